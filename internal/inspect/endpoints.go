package inspect

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

// Endpoint is one address that a load balancer sends requests to.
type Endpoint struct {
	Gateway string `json:"gateway"`
	Pool    string `json:"pool"`
	MemberTree
}

func (t *tool) endpointsCommand() *cobra.Command {
	var bad bool
	c := &cobra.Command{
		Use:     "endpoints [[NAMESPACE/]GATEWAY...]",
		Aliases: []string{"members", "ep"},
		Short:   "List the members of all pools with their live status",
		Long: "List the members of all pools with the operating status that Octavia measures, and the Node or Pod behind each.\n\n" +
			"Exit codes: 0 listed, 1 it could not be read, 2 with --unhealthy when there is one, 3 the cloud or a part of it could not be seen.",
		Example:           "  kubectl octavia endpoints\n  kubectl octavia endpoints infra/edge --unhealthy",
		ValidArgsFunction: t.completeGateways,
		RunE: func(c *cobra.Command, args []string) error {
			trees, err := t.trees(c.Context(), args)
			if err != nil {
				return err
			}
			list := []Endpoint{}
			unseen := map[string]string{}
			for _, g := range trees {
				if g.Unseen != "" {
					unseen[g.Gateway] = g.Unseen
				}
				for _, p := range g.Pools {
					for _, m := range p.Members {
						if !bad || m.OperatingStatus != "ONLINE" && m.OperatingStatus != "NO_MONITOR" {
							list = append(list, Endpoint{g.Gateway, p.Key, m})
						}
					}
				}
			}
			err = t.print(list, func(p *printer) { endpointsText(p, list, unseen) })
			switch {
			case err != nil:
				return err
			case bad && len(list) > 0:
				return &exitError{exitFindings}
			case len(unseen) > 0:
				return &exitError{exitUnseen}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&bad, "unhealthy", false, "only those that are not ONLINE")
	return c
}

func endpointsText(p *printer, list []Endpoint, unseen map[string]string) {
	rows := [][]words{head("GATEWAY", "POOL", "ADDRESS", "WEIGHT", "STATUS", "BEHIND")}
	for _, e := range list {
		status := cmp.Or(e.OperatingStatus, "-")
		rows = append(rows, []words{say("%s", e.Gateway), say("%s", e.Pool), say("%s", e.Address), say("%d", e.Weight),
			{{status, statusColour(e.OperatingStatus)}}, say("%s", cmp.Or(e.what(), "-"))})
	}
	if len(list) == 0 {
		p.say("No members.")
	} else {
		p.table(rows)
	}
	var gateways []string
	for g := range unseen {
		gateways = append(gateways, g)
	}
	slices.Sort(gateways)
	for _, g := range gateways {
		p.words(words{{fmt.Sprintf("Not seen: Gateway %s: %s", g, unseen[g]), yellow}})
	}
}
