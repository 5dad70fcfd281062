package kernel

// ReadCeiling reads all of buf once, as fast as this instruction set can, and does nothing with it: what a product of
// few activations can hope for. Timed by the caller over memory much larger than the caches, on as many threads as
// products will have, it gives the memory ceiling.
func (s *Set) ReadCeiling(buf []byte) {
	const chunk = 1 << 20
	for len(buf) > 0 {
		part := buf[:min(chunk, len(buf))]
		var sum byte
		for _, b := range part[s.readBytes(part):] {
			sum |= b
		}
		keep(sum)
		buf = buf[len(part):]
	}
}

// keep makes the compiler compute its argument.
//
//go:noinline
func keep(byte) {}

// MultiplyCeiling multiplies 8-bit integers in registers for about rounds microseconds and returns the number of
// operations it did, two for each multiplication: what a product of many activations can hope for.
func (s *Set) MultiplyCeiling(rounds int) (operations int64) {
	for range rounds {
		operations += s.multiplyBytes()
	}
	return operations
}

// multiplyGeneric multiplies and returns how many operations that were. The result depends on the products, lest the
// compiler drop them.
func multiplyGeneric() int64 {
	const n = 256
	var a [4]int32
	for i := range int32(n) {
		x := int32(int8(i))
		a[0] += x * 3
		a[1] += x * 5
		a[2] += x * 7
		a[3] += x * 9
	}
	if a[0]+a[1]+a[2]+a[3] == 1 { // it is not
		return 0
	}
	return 2 * 4 * n
}
