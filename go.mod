module github.com/tandemrun/tandem

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0 // indirect
	github.com/ardanlabs/jinja v1.8.0 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/term v0.48.0 // indirect
	golang.org/x/text v0.44.0 // indirect
)
