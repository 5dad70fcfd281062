// Package tiny holds the small trained model that is part of the binary: 3.7
// million parameters with Gemma 4's text architecture, quantised to Q8_0. It
// was made for this project and is in the public domain (CC0). It knows the
// small world of its generated corpus and nothing else.
package tiny

import _ "embed"

//go:embed tiny-q8_0.gguf
var file []byte

// Name is what the model is called where a file would have its path.
const Name = "embedded:tiny-q8_0.gguf"

// File is the GGUF file. It must not be written to.
func File() []byte { return file }
