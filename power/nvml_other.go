//go:build !(linux && (amd64 || arm64))

package power

import "errors"

func loadNVML() (nvmlLibrary, error) {
	return nil, errors.New("this build asks NVIDIA's library on linux (amd64, arm64) alone")
}
