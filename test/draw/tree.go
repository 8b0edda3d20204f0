package draw

import (
	"strings"
)

// Node is one line of a drawing, with what is below it.
type Node struct {
	Text     string
	Children []*Node
}

// Add puts a new node below n, as the last one, and returns it.
func (n *Node) Add(text string) *Node {
	child := &Node{Text: text}
	n.Children = append(n.Children, child)
	return child
}

// String draws the node and all that is below it, one line each.
func (n *Node) String() string {
	var b strings.Builder
	n.draw(&b, "", "")
	return b.String()
}

// draw writes n behind first and everything below it behind rest.
func (n *Node) draw(b *strings.Builder, first, rest string) {
	b.WriteString(strings.TrimRight(first+n.Text, " ") + "\n")
	for i, child := range n.Children {
		if i < len(n.Children)-1 {
			child.draw(b, rest+"├─ ", rest+"│  ")
		} else {
			child.draw(b, rest+"└─ ", rest+"   ")
		}
	}
}
