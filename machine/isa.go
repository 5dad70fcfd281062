package machine

import "golang.org/x/sys/cpu"

// instructionSets returns the names, ascending, of the instruction sets that
// the processor has and the system lets programs use. Names are those of
// /proc/cpuinfo without underscores.
func instructionSets() []string {
	x, a := &cpu.X86, &cpu.ARM64
	var out []string
	// All fields are false on a processor of another family.
	for _, s := range []struct {
		name string
		has  bool
	}{
		{"amxbf16", x.HasAMXBF16}, {"amxint8", x.HasAMXInt8}, {"amxtile", x.HasAMXTile},
		{"asimd", a.HasASIMD}, {"asimddp", a.HasASIMDDP}, {"asimdfhm", a.HasASIMDFHM},
		{"asimdhp", a.HasASIMDHP}, {"atomics", a.HasATOMICS},
		{"avx", x.HasAVX}, {"avx2", x.HasAVX2}, {"avx512bf16", x.HasAVX512BF16},
		{"avx512bw", x.HasAVX512BW}, {"avx512dq", x.HasAVX512DQ}, {"avx512f", x.HasAVX512F},
		{"avx512vbmi", x.HasAVX512VBMI}, {"avx512vl", x.HasAVX512VL}, {"avx512vnni", x.HasAVX512VNNI},
		{"avxvnni", x.HasAVXVNNI}, {"avxvnniint8", x.HasAVXVNNIInt8},
		{"bmi2", x.HasBMI2}, {"f16c", x.HasF16C}, {"fma", x.HasFMA},
		{"fphp", a.HasFPHP}, {"i8mm", a.HasI8MM}, {"popcnt", x.HasPOPCNT},
		{"sse41", x.HasSSE41}, {"sse42", x.HasSSE42}, {"ssse3", x.HasSSSE3},
		{"sve", a.HasSVE}, {"sve2", a.HasSVE2},
	} {
		if s.has {
			out = append(out, s.name)
		}
	}
	return out
}
