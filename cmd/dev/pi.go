package main

import (
	"context"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/internal/app"
)

// perlKnowsPi reports whether this machine's perl has bignum, which the manifest needs: some do not.
func perlKnowsPi(ctx context.Context) bool {
	return exec.CommandContext(ctx, "perl", "-Mbignum=bpi", "-e", "1").Run() == nil
}

// standIn replaces the container's command by this program.
func standIn(c *corev1.Container) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	c.Command = []string{self, "pi", "1000"}
	return nil
}

// piCommand replaces perl.
func piCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "pi DIGITS",
		Short:  "Print pi",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[0])
			if err != nil || n < 2 || n > 100_000 {
				return app.Usage{Err: fmt.Errorf("%q is not a number of digits from 2 to 100000", args[0])}
			}
			fmt.Fprintln(c.OutOrStdout(), pi(n))
			return nil
		},
	}
}

// pi computes n digits of pi by Machin's formula, pi/4 = 4 arctan(1/5) - arctan(1/239).
func pi(n int) string {
	const guard = 10 // digits that rounding may spoil
	one := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n-1+guard)), nil)
	sum := new(big.Int).Mul(big.NewInt(4), arctan(one, 5))
	sum.Sub(sum, arctan(one, 239)).Mul(sum, big.NewInt(4))
	digits := sum.String()[:n]
	return digits[:1] + "." + digits[1:]
}

// arctan is the arc tangent of 1/x, as a multiple of 1/one.
func arctan(one *big.Int, x int64) *big.Int {
	power := new(big.Int).Quo(one, big.NewInt(x))
	sum, square := new(big.Int).Set(power), big.NewInt(x*x)
	for k, term := int64(3), new(big.Int); power.Sign() != 0; k += 2 {
		power.Quo(power, square).Neg(power)
		sum.Add(sum, term.Quo(power, big.NewInt(k)))
	}
	return sum
}

// shorten cuts a line to that many characters and marks the cut.
func shorten(line string, most int) string {
	line = strings.TrimSpace(line)
	if r := []rune(line); len(r) > most {
		return string(r[:most]) + " ..."
	}
	return line
}
