package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Time jumps from sleeper to sleeper; those of one time go on in the order in
// which they lay down.
func TestVirtualOrder(t *testing.T) {
	for range 20 {
		c := NewVirtual()
		var log []string
		sleeper := func(name string, ds ...time.Duration) func() {
			return func() {
				for _, d := range ds {
					if err := c.Sleep(context.Background(), d); err != nil {
						t.Error(err)
					}
					log = append(log, fmt.Sprint(name, c.Now().UnixNano()))
				}
			}
		}
		Run(c, func() {
			All(c, sleeper("a", 30, 10), sleeper("b", 10, 20, 10), sleeper("c", 40))
			log = append(log, fmt.Sprint("end", c.Now().UnixNano()))
		})
		if got := strings.Join(log, " "); got != "b10 a30 b30 c40 a40 b40 end40" {
			t.Fatal(got)
		}
	}
}

// A context of the simulation wakes its sleeper at the time at which it ends,
// one from outside whenever it ends; time does not pass for it.
func TestVirtualCancel(t *testing.T) {
	c := NewVirtual()
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("why")
	outer, end := context.WithCancel(context.Background())
	waits := make(chan struct{})
	go func() {
		<-waits
		end()
	}()
	Run(c, func() {
		All(c, func() {
			if err := c.Sleep(ctx, time.Hour); !errors.Is(err, why) || c.Now().UnixNano() != 5 {
				t.Errorf("%v at %v", err, c.Now())
			}
		}, func() {
			_ = c.Sleep(context.Background(), 5)
			cancel(why)
			_ = c.Sleep(context.Background(), 5)
		})
		if c.Now().UnixNano() != 10 {
			t.Errorf("a sleeper that left moved time to %v", c.Now())
		}
		close(waits)
		if err := c.Wait(outer, newGate()); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
