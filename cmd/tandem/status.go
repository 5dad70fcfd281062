package main

// statusError ends a command with a status of its own. Without an error, what
// there was to say has been said.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string {
	if e.err == nil {
		return "the command ended with a status of its own"
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

// Statuses of commands that compare: oracle, verify-unit.
const (
	statusDiffers = 1
	statusCannot  = 2
)

// cannot makes an error one of status 2: the command could not do its work, so
// it says nothing about what it was to compare.
func cannot(err error) error {
	if err == nil {
		return nil
	}
	return &statusError{statusCannot, err}
}
