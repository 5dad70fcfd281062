package tandem

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version describes the build as far as the Go tool has recorded it: version,
// commit, whether there were changes beside it, toolchain and system.
func Version() string {
	v, revision, changed := "(devel)", "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			v = info.Main.Version
		}
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = " " + s.Value[:min(12, len(s.Value))]
			case s.Key == "vcs.modified" && s.Value == "true":
				changed = " with changes"
			}
		}
	}
	return fmt.Sprintf("tandem %s%s%s %s %s/%s", v, revision, changed, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
