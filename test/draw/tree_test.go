package draw

import "testing"

func TestNode_drawsBranches(t *testing.T) {
	t.Parallel()
	root := &Node{Text: "root"}
	a := root.Add("a")
	a.Add("a1").Add("deep")
	a.Add("a2")
	root.Add("b").Add("b1")
	want := `root
├─ a
│  ├─ a1
│  │  └─ deep
│  └─ a2
└─ b
   └─ b1
`
	if got := root.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
