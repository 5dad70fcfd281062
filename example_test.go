package tandem_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tandemrun/tandem"
)

// The small model that is part of the package answers a greeting, in four
// chunks on the cores of this machine.
func Example() {
	ctx := context.Background()
	m, err := tandem.Embedded()
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	e, err := m.Open(ctx, tandem.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	s, err := e.NewStream(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	r, err := s.Chat(ctx, []tandem.Message{{Role: "user", Content: "Hello"}}, tandem.Generation{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Text, r.End)
	// Output: Hello! How can I help you today? end_of_turn
}

// Two streams run at once and share the weights; each gives what it would
// give alone.
func ExampleEngine_NewStream() {
	ctx := context.Background()
	m, err := tandem.Embedded()
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	e, err := m.Open(ctx, tandem.Options{Streams: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	answers := make(chan string, 2)
	for range 2 {
		go func() {
			s, err := e.NewStream(ctx)
			if err != nil {
				log.Fatal(err)
			}
			defer s.Close()
			r, err := s.Chat(ctx, []tandem.Message{{Role: "user", Content: "Hello"}}, tandem.Generation{})
			if err != nil {
				log.Fatal(err)
			}
			answers <- r.Text
		}()
	}
	first, second := <-answers, <-answers
	fmt.Println(first == second)
	// Output: true
}

// Text comes piece by piece, and a cancelled context ends a generation.
func ExampleStream_Generate() {
	ctx := context.Background()
	m, err := tandem.Embedded()
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	e, err := m.Open(ctx, tandem.Options{Chunks: 2, Place: "cpu:0"})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	s, err := e.NewStream(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	prompt, err := m.Prompt([]tandem.Message{{Role: "user", Content: "Hello"}})
	if err != nil {
		log.Fatal(err)
	}
	r, err := s.Generate(ctx, prompt, tandem.Generation{
		MaxTokens: 3,
		Emit:      func(p tandem.Piece) bool { fmt.Printf("%q ", p.Text); return true },
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.End, r.PromptTokens, "prompt tokens")
	// Output: "Hello" "!" " How" max_tokens 10 prompt tokens
}

// Where the chunks of a layout are and what they need, before anything is
// loaded.
func ExampleModel_Inspect() {
	m, err := tandem.Embedded()
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	info, err := m.Inspect(tandem.Options{Split: []int{3, 5, 8}, Place: "c3=cpu:0"})
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range info.Chunks {
		fmt.Printf("%s: layers %d to %d on %s\n", c.Name, c.First, c.Last, c.Unit)
	}
	// Output:
	// c1: layers 0 to 2 on cpu
	// c2: layers 3 to 4 on cpu
	// c3: layers 5 to 7 on cpu:0
	// c4: layers 8 to 9 on cpu
}
