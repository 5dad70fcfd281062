package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tandemrun/tandem"
)

type abCmd struct {
	modelFlags
	A           string   `name:"a" placeholder:"FLAGS" help:"Flags of side A, as one argument."`
	B           string   `name:"b" placeholder:"FLAGS" help:"Flags of side B."`
	EnvA        []string `sep:"none" placeholder:"K=V" help:"Environment of side A; may be repeated."`
	EnvB        []string `sep:"none" placeholder:"K=V" help:"Environment of side B; may be repeated."`
	Of          string   `enum:"run,bench,batch" default:"run" placeholder:"COMMAND" help:"The command that the flags are of: run, bench or batch. Default: run."`
	Set         string   `enum:",seeds" default:"" placeholder:"seeds" help:"Make a ready set of comparisons instead of --a and --b."`
	Primary     string   `enum:"tok_s,ttft,itl_p50,itl_p90,itl_p99,cpu_active,joules_per_token" default:"tok_s" placeholder:"FIGURE" help:"The figure that is judged: tok_s, ttft, itl_p50, itl_p90, itl_p99, cpu_active or joules_per_token. Default: tok_s."`
	Repetitions int      `short:"r" default:"10" placeholder:"N" help:"Quiet pairs of trials to keep, at least 5. Default: 10."`
	N           int      `short:"n" default:"64" placeholder:"N" help:"Tokens of a trial; of batch, of each answer. Default: 64."`
	Prompt      string   `default:"Tell me a story." placeholder:"TEXT" help:"The prompt of run. Default: 'Tell me a story.'"`
	Quality     bool     `help:"Also compare the logits of both over the 20 fixed prompts, up to -n tokens each."`
	JSON        bool     `name:"json" help:"Print a JSON object for each comparison."`
}

// Help is shown by tandem ab --help.
func (abCmd) Help() string {
	return `Examples:

    tandem ab -m model.gguf --a '--specialize on' --b '--specialize off'
    tandem ab --a '' --b '' --env-b LLM_DECODE_QOS=utility --primary itl_p90
    tandem ab --of batch --a '--streams 1' --b '--streams 4' --json
    tandem ab -m model.gguf --a '--kv f32' --b '--kv q8_0' --quality
    tandem ab -m model.gguf --set seeds

Trials run in turn, A B A B, each a process of its own that loads the model,
warms up and measures; the first pair does not count. A pair is kept if in
neither trial others had more than 5 % of the CPUs' time. One figure,
--primary, is judged: p below 0.01 (Mann-Whitney U) is a difference, all else
is 'no difference found'. docs/ab.md has the reasons.`
}

// An abCase is one comparison.
type abCase struct {
	Name string   `json:"name,omitempty"`
	A    string   `json:"a"`
	B    string   `json:"b"`
	EnvA []string `json:"env_a"`
	EnvB []string `json:"env_b"`
}

// seedCases are the comparisons of the seed documents.
var seedCases = []abCase{
	{Name: "specialisation", A: "--specialize on", B: "--specialize off"},
	{Name: "scheduling class: user-initiated against utility", A: "--qos user-initiated", B: "--qos utility"},
	{Name: "scheduling class: user-initiated against background", A: "--qos user-initiated", B: "--qos background"},
	{Name: "chunks", A: "--chunks 4", B: "--chunks 3"},
}

// abOutput is the JSON output of one comparison.
type abOutput struct {
	abCase
	Of      string `json:"of"`
	Model   string `json:"model"`
	Tokens  int    `json:"tokens"`
	Rule    string `json:"rule"`
	Verdict string `json:"verdict"`
	tandem.ComparisonResult
	Memory  *abMemory         `json:"memory"`            // as planned
	Quality *tandem.Agreement `json:"quality,omitempty"` // of B, with A for the reference
}

// Run compares.
func (k *abCmd) Run(c *console) error {
	if k.N < 2 {
		return fmt.Errorf("-n %d: it must be at least 2", k.N)
	}
	cases := []abCase{{A: k.A, B: k.B, EnvA: k.EnvA, EnvB: k.EnvB}}
	if k.Set == "seeds" {
		if k.A != "" || k.B != "" || len(k.EnvA)+len(k.EnvB) > 0 {
			return errors.New("--set excludes --a, --b, --env-a and --env-b")
		}
		cases = seedCases
	}
	ctx, stop := c.context()
	defer stop()
	log := tandem.OpenPowerLog(ctx, powerEvery)
	defer log.Close()
	for i, x := range cases {
		if i > 0 && !k.JSON {
			fmt.Fprintln(c.out)
		}
		out, err := k.compare(ctx, c, log, x)
		if err != nil {
			return cause(ctx, err)
		}
		if k.JSON {
			err = c.json(out)
		} else {
			err = out.print(c.out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// powerEvery is the time between samples of power.
const powerEvery = 100 * time.Millisecond

// compare makes one comparison.
func (k *abCmd) compare(ctx context.Context, c *console, log *tandem.PowerLog, x abCase) (abOutput, error) {
	out := abOutput{abCase: x, Of: k.Of, Model: cmp.Or(k.Model, embedded), Tokens: k.N}
	out.Rule = fmt.Sprintf("others had at most %.0f %% of the CPUs' time in both trials", 100*tandem.ComparisonDisturbed)
	var err error
	trials := trialRunner{k: k, log: log}
	for s, side := range []struct {
		flags string
		env   []string
	}{{x.A, x.EnvA}, {x.B, x.EnvB}} {
		if trials.sides[s].flags, err = splitFlags(side.flags); err != nil {
			return out, fmt.Errorf("--%s: %w", strings.ToLower(tandem.Side(s).String()), err)
		}
		for _, e := range side.env {
			if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
				return out, fmt.Errorf("--env-%s %s: it must be NAME=VALUE", strings.ToLower(tandem.Side(s).String()), e)
			}
		}
		trials.sides[s].env = side.env
	}
	out.EnvA, out.EnvB = append([]string{}, x.EnvA...), append([]string{}, x.EnvB...)
	if err := trials.begin(); err != nil {
		return out, err
	}
	defer trials.end()
	pairs := c.steps("pairs")
	defer pairs.clear()
	r, err := tandem.Compare(ctx, tandem.Comparison{
		Pairs: k.Repetitions, Primary: k.Primary, Units: figureUnits, Run: trials.run,
		Progress: func(_, kept int) { pairs.update(kept, k.Repetitions) },
	})
	if err != nil {
		return out, err
	}
	out.ComparisonResult = r
	out.Verdict = verdictOf(r)
	pairs.clear()
	err = trials.layouts(ctx, c, &out)
	return out, err
}

// verdictOf is the verdict in words.
func verdictOf(r tandem.ComparisonResult) string {
	switch {
	case r.P == nil:
		return "not judged" // a note says why
	case !r.Difference:
		return "no difference found"
	}
	return fmt.Sprintf("a difference: %+.1f %% from A to B", 100*r.Rows[0].Change.Median)
}

// figureNames says what figures are called for a person.
var figureNames = map[string]string{
	"tok_s": "tok/s", "ttft": "TTFT ms", "itl_p50": "ITL p50 ms", "itl_p90": "ITL p90 ms", "itl_p99": "ITL p99 ms",
	"cpu_active": "CPU-active share", "joules_per_token": "joules a token",
}

var figureUnits = map[string]string{
	"tok_s": "tok/s", "ttft": "ms", "itl_p50": "ms", "itl_p90": "ms", "itl_p99": "ms", "cpu_active": "share", "joules_per_token": "J",
}

// print writes a comparison for a person.
func (out abOutput) print(to io.Writer) error {
	describe := func(flags string, env []string) string {
		return strings.Join(append(slices.Clone(env), fmt.Sprintf("%s %s", out.Of, flags)), " ")
	}
	if out.Name != "" {
		fmt.Fprintf(to, "%s\n", out.Name)
	}
	fmt.Fprintf(to, "A: %s\nB: %s\n", describe(out.A, out.EnvA), describe(out.B, out.EnvB))
	kept := fmt.Sprintf("%d of %d pairs kept (%s)", out.Kept, out.ComparisonResult.Run, out.Rule)
	if out.AllKept {
		kept = fmt.Sprintf("%d pairs, all kept: this system does not tell what others did", out.Kept)
	}
	fmt.Fprintf(to, "%s, %d tokens; %s\n", out.Model, out.Tokens, kept)
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "median (%.0f %% interval)\tA\tB\tchange\n", 100*tandem.ComparisonConfidence)
	number := func(x float64) string { return fmt.Sprintf("%.4g", x) }
	share := func(x float64) string { return fmt.Sprintf("%+.1f %%", 100*x) }
	for _, r := range out.Rows {
		fmt.Fprintf(w, "%s\t%s (%s to %s)\t%s (%s to %s)\t%s (%s to %s)\n", cmp.Or(figureNames[r.Name], r.Name),
			number(r.A.Median), number(r.A.Low), number(r.A.High), number(r.B.Median), number(r.B.Low), number(r.B.High),
			share(r.Change.Median), share(r.Change.Low), share(r.Change.High))
	}
	for _, name := range []string{"ttft", "itl_p50", "cpu_active", "joules_per_token"} {
		if !slices.ContainsFunc(out.Rows, func(r abRow) bool { return r.Name == name }) && out.Kept > 0 {
			fmt.Fprintf(w, "%s\tunavailable\tunavailable\t\n", figureNames[name])
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	switch {
	case out.Equal == nil:
		fmt.Fprintln(to, "tokens: not compared")
	case *out.Equal:
		fmt.Fprintln(to, "tokens: equal in all pairs kept")
	default:
		what := "token"
		if out.Of == "batch" {
			what = "byte of the answers"
		}
		fmt.Fprintf(to, "tokens: they differ, first in pair %d at %s %d\n", out.Divergence.Pair+1, what, out.Divergence.Index)
	}
	out.printLayouts(to)
	for _, note := range out.Notes {
		fmt.Fprintf(to, "note: %s\n", note)
	}
	if out.P == nil {
		_, err := fmt.Fprintf(to, "%s: %s\n", out.Primary, out.Verdict)
		return err
	}
	_, err := fmt.Fprintf(to, "%s: %s (p = %.2g; below %g is a difference)\n", out.Primary, out.Verdict, *out.P, tandem.ComparisonAlpha)
	return err
}

// splitFlags cuts flags at spaces, outside of quotes.
func splitFlags(s string) ([]string, error) {
	var out []string
	var word strings.Builder
	begun, quote := false, rune(0)
	for _, r := range s {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if begun {
				out = append(out, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("%s: a %c is not closed", s, quote)
	}
	if begun {
		out = append(out, word.String())
	}
	return out, nil
}
