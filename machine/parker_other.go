//go:build !linux

package machine

import "sync"

// A Parker is where a goroutine waits that is locked to its thread. The zero value
// is ready.
type Parker struct {
	once sync.Once
	c    chan struct{}
}

func (p *Parker) room() chan struct{} {
	p.once.Do(func() { p.c = make(chan struct{}, 1) })
	return p.c
}

// Park waits until Unpark is called, or has been since Park returned last. One
// goroutine waits at a parker.
func (p *Parker) Park() { <-p.room() }

// Unpark lets the goroutine go on that waits or is about to. It does not block.
func (p *Parker) Unpark() {
	select {
	case p.room() <- struct{}{}:
	default:
	}
}
