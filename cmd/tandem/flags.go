package main

import (
	"errors"
	"fmt"

	"github.com/tandemrun/tandem"
)

// modelFlags choose the model.
type modelFlags struct {
	Model string `short:"m" placeholder:"FILE" help:"GGUF file, or any part of a split one. Default: the small model in the binary ('embedded')."`
}

// embedded is the name of the model in the binary.
const embedded = "embedded"

func (f modelFlags) load() (*tandem.Model, error) {
	if f.Model == "" || f.Model == embedded {
		return tandem.Embedded()
	}
	return tandem.Load(f.Model)
}

// deviceFlags choose a simulated device in place of a model.
type deviceFlags struct {
	Device string  `placeholder:"NAME|FILE" help:"Simulate a device instead: mac-studio, iphone-17-pro, or the file of a device profile."`
	Scale  float64 `placeholder:"X" help:"Simulate in real time, X times as slow as the device. Default: 0, virtual time."`
}

// device is the device, if one is asked for.
func (f deviceFlags) device(m modelFlags) (tandem.Device, bool, error) {
	d := tandem.Device{Name: f.Device, Scale: f.Scale}
	switch {
	case f.Device == "" && f.Scale != 0:
		return d, false, errors.New("--scale is the time of a simulated device; it needs --device")
	case f.Device == "":
		return d, false, nil
	case m.Model != "":
		return d, false, errors.New("--device and --model exclude each other: a simulated device has a model of its own")
	case f.Scale < 0:
		return d, false, fmt.Errorf("--scale %g: it must be more than 0, or 0 for virtual time", f.Scale)
	}
	return d, true, nil
}

// layoutFlags say how a model is split and where its chunks run. Numbers are
// pointers, so that a 0 that was asked for is not taken for a default.
type layoutFlags struct {
	Chunks       *int   `placeholder:"N" help:"Number of chunks, balanced by bytes. Default: four, by the built-in rule."`
	Split        []int  `placeholder:"L" help:"First layer of each later chunk, such as 3,5,7, instead of --chunks."`
	Place        string `placeholder:"UNIT|cN=UNIT,…" help:"Unit of all chunks (cpu:0), or of some (c1=cpu:0,c3=cpu:1). Default: cpu."`
	PlacePrefill string `placeholder:"UNIT|cN=UNIT,…" help:"The same for prefill: chunks whose unit differs are loaded on both. Default: as --place."`
	Threads      *int   `short:"t" placeholder:"N" help:"Most threads of a unit. Default: one a core."`
	Ctx          *int   `placeholder:"N" help:"Context size in tokens. Default: 4096, or what the model was trained for if less."`
	Block        *int   `placeholder:"N" help:"Most tokens of a prompt in one step. Default: 512."`
	BlockBeside  *int   `placeholder:"N" help:"The same while other streams decode, whose steps may have to wait for it. Default: 32."`
	Merge        *int   `placeholder:"N" help:"Most streams whose rows run in one task; 1 keeps streams apart. Default: as many as wait."`
	KV           string `name:"kv" placeholder:"TYPE" help:"Type of the KV cache, f32, f16 or q8_0. Default: f32."`
	// The seeds' name of the switch has the values 0 and 1.
	Specialize string `enum:"on,off,1,0" default:"on" env:"LLM_FAST_PREDICTION" placeholder:"on|off" help:"Lay weights out for the unit at load (on), or use them as the file has them (off): a faster load, slower steps, equal results. Default: on."`
	QoS        string `name:"qos" env:"LLM_DECODE_QOS" placeholder:"CLASS" help:"Scheduling class of the threads: background, utility or user-initiated. Default: as the command was started."`
	Duty       string `placeholder:"PERCENT" help:"Let a unit be busy for at most this share of the time, such as 80%: it rests between tasks, and more when the machine is hot. Default: no rest."`

	observe func(tandem.Record) // see tandem.Options
	plan    string              // see planned
	tally   *tandem.Tally       // the console's
}

// AfterApply is called by kong when the flags are read.
func (f *layoutFlags) AfterApply(c *console) error {
	f.tally = c.tally
	return nil
}

func (f layoutFlags) options() (tandem.Options, error) {
	o := tandem.Options{
		PlacePrefill: f.PlacePrefill, Split: f.Split, KV: f.KV, FileLayout: f.Specialize == "off" || f.Specialize == "0", QoS: f.QoS, Observe: f.observe, Tally: f.tally,
	}
	var err error
	if f.Duty != "" {
		if o.Duty, err = tandem.ParseDuty(f.Duty); err != nil {
			return o, fmt.Errorf("--duty: %w", err)
		}
	}
	if o.Place, err = placement(f.Place); err != nil {
		return o, err
	}
	for _, n := range []struct {
		flag string
		from *int
		to   *int
	}{
		{"chunks", f.Chunks, &o.Chunks},
		{"threads", f.Threads, &o.Threads},
		{"ctx", f.Ctx, &o.Context},
		{"block", f.Block, &o.Block},
		{"block-beside", f.BlockBeside, &o.BlockBeside},
		{"merge", f.Merge, &o.Merge},
	} {
		if n.from == nil {
			continue
		}
		if *n.from < 1 {
			return o, fmt.Errorf("--%s %d: it must be at least 1", n.flag, *n.from)
		}
		*n.to = *n.from
	}
	return o, nil
}

// samplingFlags say how tokens are chosen.
type samplingFlags struct {
	Temp          float64 `placeholder:"T" help:"Temperature. Default: 0, the most likely token."`
	TopK          int     `placeholder:"K" help:"Keep the K most likely tokens. Default: 0, all."`
	TopP          float64 `placeholder:"P" help:"Keep the most likely tokens up to a sum of P. Default: 0, all."`
	MinP          float64 `placeholder:"P" help:"Keep tokens at least P times as likely as the most likely one. Default: 0, all."`
	RepeatPenalty float64 `placeholder:"R" help:"Make recent tokens less likely; 1 is off. Default: off."`
	Seed          uint64  `placeholder:"S" help:"Seed of the random numbers. Default: 0."`
}

func (f samplingFlags) options() tandem.Sampling {
	return tandem.Sampling{Temperature: f.Temp, TopK: f.TopK, TopP: f.TopP, MinP: f.MinP, Repeat: f.RepeatPenalty, Seed: f.Seed}
}

// maxFlags limit an answer.
type maxFlags struct {
	Max int `short:"n" name:"max-tokens" placeholder:"N" help:"Most new tokens. Default: 0, until the turn ends or the context is full."`
}

func (f maxFlags) check() error {
	if f.Max < 0 {
		return fmt.Errorf("-n %d: it must be 0 (no limit) or more", f.Max)
	}
	return nil
}
