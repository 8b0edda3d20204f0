package inspect

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
)

func (t *tool) dumpCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "dump [[NAMESPACE/]GATEWAY...]",
		Short: "Write a support bundle without secrets",
		Long: "Write a .tar.gz with what the controller sees and would do: for each Gateway the objects that it depends on, the wanted and the observed load balancer, the plan, and the tree; " +
			"the audit, the Events, and versions.\n\n" +
			"Of Secrets there are only names, types, and the sizes of what is in them; of credentials there is nothing. Names of hosts, addresses and objects are in it: look before you give it away.\n" +
			"What could not be read is said in a file of its own, and does not stop the rest.",
		Example:           "  kubectl octavia dump\n  kubectl octavia dump infra/edge --file - | tar tz",
		ValidArgsFunction: t.completeGateways,
		RunE:              func(c *cobra.Command, args []string) error { return t.dump(c.Context(), file, args) },
	}
	c.Flags().StringVar(&file, "file", "", "file to write, or - for standard output (default octavia-dump-TIME.tar.gz)")
	return c
}

// bundle is a directory in memory.
type bundle struct {
	names []string
	files map[string][]byte
}

func (b *bundle) add(name string, content []byte) {
	if b.files == nil {
		b.files = map[string][]byte{}
	}
	b.names, b.files[name] = append(b.names, name), content
}

// yaml adds a value; one that cannot be written down is said.
func (b *bundle) yaml(name string, value any) {
	out, err := yaml.Marshal(value)
	if err != nil {
		out = []byte("cannot be written: " + err.Error() + "\n")
	}
	b.add(name, out)
}

func (t *tool) dump(ctx context.Context, file string, args []string) error {
	r, _, err := t.reader(ctx)
	if err != nil {
		return err
	}
	b := &bundle{}
	var unseen []string
	failed := func(what string, err error) {
		if err != nil {
			unseen = append(unseen, what+": "+explained(err))
		}
	}
	c, err := t.openstackIfChosen(ctx)
	failed("OpenStack", err)
	about := map[string]any{"tool": version(), "time": t.now().UTC().Format(metav1.RFC3339Micro), "clusterID": r.ClusterID, "controllerName": r.Controller,
		"server": t.connected.Server, "kubernetes": t.connected.Version, "served": r.Served.String()}
	if found, err := installed(ctx, t.connected.Live); err == nil {
		var images []string
		for _, i := range found {
			images = append(images, i.images...)
		}
		about["images"] = images
	}
	if c != nil {
		about["cloud"] = c.Identity(ctx)
		capable, err := c.Preflight(ctx)
		failed("Octavia", err)
		about["octavia"] = capable
	} else if err == nil {
		unseen = append(unseen, "OpenStack: no cloud is chosen (--cloud, OS_CLOUD)")
	}
	b.yaml("about.yaml", about)
	keys, err := t.gatewayKeys(ctx, r, args)
	if err != nil {
		return err
	}
	for _, key := range keys {
		v, err := look(ctx, r, c, key, t.now())
		if err != nil {
			failed("Gateway "+key.String(), err)
			continue
		}
		failed("load balancer of Gateway "+key.String(), v.unseen)
		t.dumpGateway(b, v)
	}
	if c != nil && len(args) == 0 {
		audit, err := t.audit(ctx, nil)
		failed("audit", err)
		b.yaml("audit.yaml", audit)
	}
	events, err := t.events(ctx)
	failed("Events", err)
	b.add("events.txt", []byte(events))
	b.add("not-seen.txt", []byte(strings.Join(append(unseen, ""), "\n")))
	return t.writeBundle(b, file)
}

func (t *tool) dumpGateway(b *bundle, v *view) {
	dir := "gateways/" + v.key.Namespace + "/" + v.key.Name + "/"
	b.yaml(dir+"kubernetes.yaml", redacted(v.snapshot))
	b.yaml(dir+"wanted.yaml", v.want)
	b.yaml(dir+"verdicts.yaml", v.compiled.Verdicts)
	if v.have != nil {
		b.yaml(dir+"observed.yaml", v.have)
	}
	steps, err := v.todo.JSON()
	if err != nil {
		steps = []byte(err.Error())
	}
	b.add(dir+"plan.json", steps)
	b.add(dir+"plan.txt", []byte(printable(v.todo.String())))
	var tree bytes.Buffer
	shown := t.tree(v)
	shown.node(true).draw(&printer{w: &tree})
	b.add(dir+"tree.txt", tree.Bytes())
}

// secretShape is what a bundle tells of a Secret.
type secretShape struct {
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Type      string         `json:"type"`
	Bytes     map[string]int `json:"bytes"`
}

// redacted is a snapshot without what is in Secrets, and without the annotation in which kubectl keeps whole manifests.
func redacted(s compile.Snapshot) map[string]any {
	var secrets []secretShape
	for _, one := range s.Secrets {
		shape := secretShape{Namespace: one.Namespace, Name: one.Name, Type: string(one.Type), Bytes: map[string]int{}}
		for key, value := range one.Data {
			shape.Bytes[key] = len(value)
		}
		secrets = append(secrets, shape)
	}
	s.Secrets = nil
	out := map[string]any{"secrets": secrets}
	text, err := json.Marshal(s)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	var rest map[string]any
	if err := json.Unmarshal(text, &rest); err != nil {
		return map[string]any{"error": err.Error()}
	}
	strip(rest)
	for name, value := range rest {
		if name != "Secrets" {
			out[name] = value
		}
	}
	return out
}

// strip removes what metadata holds of whole objects.
func strip(value any) {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "managedFields")
		if annotations, ok := v["annotations"].(map[string]any); ok {
			delete(annotations, lastApplied)
		}
		for _, inner := range v {
			strip(inner)
		}
	case []any:
		for _, inner := range v {
			strip(inner)
		}
	}
}

// events are those about the kinds that the controller reports on.
func (t *tool) events(ctx context.Context) (string, error) {
	var list corev1.EventList
	if err := t.connected.Live.List(ctx, &list, client.Limit(listMost)); err != nil {
		return "", err
	}
	var out []string
	for i := range list.Items {
		e := &list.Items[i]
		if !slices.Contains([]string{"Gateway", "GatewayClass", "HTTPRoute", "ListenerSet", "OpenStackBackendPolicy"}, e.InvolvedObject.Kind) {
			continue
		}
		at := e.LastTimestamp.Time
		if at.IsZero() {
			at = e.EventTime.Time
		}
		out = append(out, printable(fmt.Sprintf("%s %s %s/%s %s %s: %s", at.UTC().Format("2006-01-02T15:04:05Z"), e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name, e.Type, e.Reason, e.Message)))
	}
	slices.Sort(out)
	return strings.Join(append(out, ""), "\n"), nil
}

// listMost bounds the Events of a bundle.
const listMost = 5000

func (t *tool) writeBundle(b *bundle, file string) error {
	name := cmp.Or(file, "octavia-dump-"+t.now().UTC().Format("20060102-150405")+".tar.gz")
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, one := range b.names {
		if err := archive.WriteHeader(&tar.Header{Name: "octavia-dump/" + one, Mode: 0o600, Size: int64(len(b.files[one])), ModTime: t.now()}); err != nil {
			return fmt.Errorf("writing the bundle: %w", err)
		}
		if _, err := archive.Write(b.files[one]); err != nil {
			return fmt.Errorf("writing the bundle: %w", err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	if err := zipped.Close(); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	if name == "-" {
		if _, err := io.Copy(t.Out, &out); err != nil {
			return fmt.Errorf("writing the bundle: %w", err)
		}
		return nil
	}
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	return t.print(map[string]any{"file": name, "files": b.names}, func(p *printer) {
		p.words(words{{"✓", green}}.and(plain, " %s: %s, without secrets. The logs are not in it: kubectl logs -n gateway-api-openstack-system deploy/openstack-gateway-controller", name, plural(len(b.names), "file")))
	})
}
