package answer

import (
	"reflect"
	"slices"
	"testing"
)

func TestNormal_makesEqualWhatMeansTheSame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want Redirect }{
		{Redirect{Code: 301, Scheme: "HTTPS", Port: 443}, Redirect{Code: 301, Scheme: "https"}},
		{Redirect{Code: 301, Scheme: "https", Port: 80}, Redirect{Code: 301, Scheme: "https", Port: 80}},
		{Redirect{Code: 301, Port: 80}, Redirect{Code: 301, Port: 80}},
		{Redirect{Code: 302, Prefix: "/a/", Replacement: "/b/"}, Redirect{Code: 302, Prefix: "/a", Replacement: "/b"}},
		{Redirect{Code: 302, Prefix: "/a", Replacement: "b"}, Redirect{Code: 302, Prefix: "/a", Replacement: "/b"}},
		{Redirect{Code: 302, Prefix: "/a/", Replacement: "/a"}, Redirect{Code: 302}},
		{Redirect{Code: 302, Replacement: "/"}, Redirect{Code: 302}},
		{Redirect{Code: 302, FullPath: "/x/"}, Redirect{Code: 302, FullPath: "/x/"}},
	} {
		got, err := c.in.Normal()
		if err != nil || got != c.want {
			t.Errorf("%+v: got %+v, %v, want %+v", c.in, got, err, c.want)
		}
		if again, err := got.Normal(); err != nil || again != got {
			t.Errorf("%+v is not stable: %+v, %v", got, again, err)
		}
	}
}

func TestNormal_refuses(t *testing.T) {
	t.Parallel()
	for _, r := range []Redirect{
		{}, {Code: 200}, {Code: 301, Scheme: "ftp"}, {Code: 301, Port: -1}, {Code: 301, Port: 65536}, {Code: 301, Host: "a b"},
		{Code: 301, FullPath: "/a?b"}, {Code: 301, FullPath: "/a#b"}, {Code: 301, FullPath: "/a\r\nb"}, {Code: 301, Replacement: "/é"},
		{Code: 301, FullPath: "/a", Prefix: "/b"},
	} {
		if got, err := r.Normal(); err == nil {
			t.Errorf("%+v became %+v", r, got)
		}
	}
}

func TestTable_survivesItsAnnotation(t *testing.T) {
	t.Parallel()
	table := Table{9600: {Code: 301, Port: 8080}, 9601: {Code: 302, Prefix: "/a", Replacement: "/b"}}
	text, err := table.Format("me/controller")
	if err != nil {
		t.Fatal(err)
	}
	if got, controller := ParseTable(text); !reflect.DeepEqual(got, table) || controller != "me/controller" {
		t.Errorf("%s became %+v of %q", text, got, controller)
	}
}

func TestParseTable_leavesOutWhatItCannotUse(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "x", "[]", `{"ports":{"x":{}}}`, `{"ports":{"9600":{"code":200}}}`, `{"ports":{"9600":{"code":301,"prefix":"/a/"}}}`,
		`{"ports":{"9404":{"code":301}}}`, `{"ports":{"9301":{"code":302}}}`,
	} {
		if got, _ := ParseTable(text); len(got) != 0 {
			t.Errorf("%s became %+v", text, got)
		}
	}
}

func TestAssign_givesEachRedirectOnePort(t *testing.T) {
	t.Parallel()
	table := Table{9601: {Code: 301, Port: 1}}
	among := []int{9602, 9600, 9601, 9404}
	for _, c := range []struct {
		r    Redirect
		want int
	}{
		{Redirect{Code: 301, Port: 1}, 9601}, {Redirect{Code: 301, Port: 2}, 9600}, {Redirect{Code: 301, Port: 3}, 9602},
		{Redirect{Code: 301, Port: 2}, 9600}, {Redirect{Code: 301, Port: 4}, 0},
	} {
		if got, _ := table.Assign(c.r, among); got != c.want {
			t.Errorf("%+v got %d, want %d", c.r, got, c.want)
		}
	}
}

func TestPorts_areDistinctAndMeanSomething(t *testing.T) {
	t.Parallel()
	ports := Ports()
	if sorted := slices.Compact(slices.Sorted(slices.Values(ports))); len(sorted) != len(ports) {
		t.Errorf("some port is there twice: %v", ports)
	}
	for _, code := range Codes {
		port, ok := Fixed(Redirect{Code: code, Scheme: "https"})
		if !ok || !slices.Contains(ports, port) {
			t.Errorf("no port for https with %d", code)
		}
		if _, redirect := (Table{}).Meaning(port); redirect == nil || *redirect != (Redirect{Code: code, Scheme: "https"}) {
			t.Errorf("port %d means %+v", port, redirect)
		}
	}
	if _, ok := Fixed(Redirect{Code: 301, Scheme: "https", Port: 8443}); ok {
		t.Error("a redirect to another port has no port of its own")
	}
}
