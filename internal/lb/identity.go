package lb

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
)

// The ownership contract
//
// Every object that we create carries its identity in the create call itself, so that a lost answer or a crash never
// leaves an object that nobody can attribute. This file is the only place that writes or reads it.
//
//	Octavia object   tags:
//	  gateway-api-openstack.dev/1=<cluster id>/<Gateway UID>   the mark: format version 1, who owns it
//	  controller=<controllerName>                              which controller of that cluster
//	  gateway=<namespace>/<name>                               for people
//	  role=<kind>                                              loadbalancer, listener, pool, l7policy, ...
//	  key=<key>                                                which of its kind below this load balancer
//	  route=<namespace>/<name>                                 policies only, for people
//	  service=<namespace>/<name>:<port>                        pools only, one each, for people
//	  label=<key>=<value>, annotation=<key>=<value>            load balancers only, from spec.infrastructure of the Gateway
//	  replaces=<id>                                            load balancers only, the one of the same Gateway that it was made to replace
//	  <any>, extra=<hashes>                                    load balancers only, the extra tags of the class as they are, and which they are
//	Floating IP      description: "<mark> <gateway> controller=<controllerName>" (tags would be a second call)
//	Barbican secret  name: "<mark> controller=<controllerName> key=<key> gateway=<namespace>/<name>" (there is nothing else)
//
// Two load balancers of one Gateway are a conflict, unless one says that it replaces the other.
//
// The key of a secret is the hash of its content (secret.go), and neither name nor content can change: a secret is found again after a
// crash, never stored twice, and never mistaken for an older one.
//
// An object is ours when it has the mark and the controller tag of this Gateway and lies in our project. The
// names and all other tags are for people and never prove anything. A load balancer with our prefix, another version and
// the same cluster and UID was made for the same Gateway by another version of this controller: it is never touched by this one, and
// none is made beside it. It is reported. Whoever changes the format raises the version, reads the older ones and replaces their tags.
//
// Octavia allows 255 characters for a name and for a tag, Neutron 255 for a description; longer values keep a readable
// prefix and end in a hash of the whole. Tags are de-duplicated: Octavia answers duplicates with 500 or a misleading 409.
const (
	markPrefix  = api.Domain + "/"
	markVersion = "1"
	// MaxLength is Octavia's limit for names and for each tag, and Neutron's for descriptions, in characters.
	MaxLength = 255
)

// Owner identifies the Gateway that a cloud object belongs to.
type Owner struct {
	// ClusterID tells clusters that share a project apart. It has no "/" (checked by the flag).
	ClusterID string `json:"clusterID"`
	// Controller is the controllerName of the GatewayClass.
	Controller string `json:"controller"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// Mark is the one tag that proves ownership, together with ControllerTag.
func (o Owner) Mark() string {
	return Shorten(markPrefix + markVersion + "=" + o.ClusterID + "/" + o.UID)
}

// OtherMarks are the marks that this owner has in other versions of the format.
func (o Owner) OtherMarks() []string {
	var marks []string
	for version := range 10 {
		mark := Shorten(fmt.Sprintf("%s%d=%s/%s", markPrefix, version, o.ClusterID, o.UID))
		if mark != o.Mark() {
			marks = append(marks, mark)
		}
	}
	return marks
}

// OwnsInOtherFormat says whether tags carry the mark of this owner in another version of the format.
func (o Owner) OwnsInOtherFormat(tags []string) bool {
	marks := o.OtherMarks()
	return slices.ContainsFunc(tags, func(t string) bool { return slices.Contains(marks, t) })
}

// ControllerTag is the second half of the proof.
func (o Owner) ControllerTag() string { return Shorten("controller=" + o.Controller) }

// Tags is the full identity of an object; extra adds tags such as RouteTag. Sorted and without duplicates.
func (o Owner) Tags(kind Kind, key string, extra ...string) []string {
	tags := append([]string{
		o.Mark(),
		o.ControllerTag(),
		Shorten("gateway=" + o.Namespace + "/" + o.Name),
		"role=" + string(kind),
		Shorten("key=" + key),
	}, extra...)
	slices.Sort(tags)
	return slices.Compact(tags)
}

// RouteTag names the route that a policy comes from.
func RouteTag(namespace, name string) string {
	return Shorten("route=" + namespace + "/" + name)
}

// ServiceTag names a Service behind a pool.
func ServiceTag(namespace, name string, port int32) string {
	return Shorten(fmt.Sprintf("service=%s/%s:%d", namespace, name, port))
}

// The prefixes of tags that hold what a Gateway's author wrote: with them, no value can pass for one of ours.
const (
	labelPrefix      = "label="
	annotationPrefix = "annotation="
)

// InfrastructureTags are the tags for the labels and annotations of spec.infrastructure, sorted. What does not fit into a tag is left out:
// what is too long, what is not printable ASCII, and what differs from another one only by case, which Octavia's database takes for
// the same.
func InfrastructureTags(labels, annotations map[string]string) []string {
	var all []string
	add := func(prefix string, from map[string]string) {
		for key, value := range from {
			tag := prefix + key + "=" + value
			if len(tag) <= MaxLength && strings.Trim(tag, " ") == tag && strings.IndexFunc(tag, func(c rune) bool { return c < ' ' || c > '~' }) < 0 {
				all = append(all, tag)
			}
		}
	}
	add(labelPrefix, labels)
	add(annotationPrefix, annotations)
	slices.Sort(all)
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(tag string) bool {
		folded := strings.ToLower(tag)
		again := seen[folded]
		seen[folded] = true
		return again
	})
}

// replacesPrefix begins the tag that names the load balancer to replace. It is as old as the load balancer that has it, and stays as long.
const replacesPrefix = "replaces="

// ReplacesTag is for a load balancer that is made to replace another one of the same Gateway.
func ReplacesTag(id string) string { return Shorten(replacesPrefix + id) }

// ReplacesFromTags is the id of the load balancer that one was made to replace, "" when it was made for none.
func ReplacesFromTags(tags []string) string {
	for _, t := range tags {
		if id, ok := strings.CutPrefix(t, replacesPrefix); ok {
			return id
		}
	}
	return ""
}

// extraPrefix begins the tag that names the extra tags by their hashes. They have no prefix of their own, since others shall find them as they
// are, so this tells them from the tags that others have added.
const extraPrefix = "extra="

// ExtraTags are the tags of a class with the tag that names them; none for none. Those that could pass for a tag of ours are left out.
func ExtraTags(given []string) []string {
	var all, hashes []string
	for _, t := range given {
		// Octavia's database takes what differs by case for the same.
		again := slices.ContainsFunc(all, func(other string) bool { return strings.EqualFold(other, t) })
		if reserved(t) || again || utf8.RuneCountInString(t) > MaxLength {
			continue
		}
		all = append(all, t)
		hashes = append(hashes, digest(t)[:10])
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(hashes)
	return append(all, Shorten(extraPrefix+strings.Join(hashes, ".")))
}

// reserved says whether a tag looks like one of ours.
func reserved(tag string) bool {
	for _, prefix := range []string{markPrefix, "controller=", "gateway=", "role=", "key=", "route=", "service=", labelPrefix, annotationPrefix, extraPrefix, replacesPrefix} {
		if strings.HasPrefix(tag, prefix) {
			return true
		}
	}
	return false
}

// SplitTags divides the tags of a load balancer into those that a Gateway or its class decide about, sorted, and those that stay: others' and ReplacesTag.
// The identity is in neither.
func SplitTags(tags []string) (decided, others []string) {
	var hashes []string
	for _, t := range tags {
		if rest, ok := strings.CutPrefix(t, extraPrefix); ok {
			hashes = append(hashes, strings.Split(rest, ".")...)
		}
	}
	for _, t := range tags {
		switch {
		case strings.HasPrefix(t, labelPrefix), strings.HasPrefix(t, annotationPrefix), strings.HasPrefix(t, extraPrefix),
			!reserved(t) && slices.Contains(hashes, digest(t)[:10]):
			decided = append(decided, t)
		case !reserved(t), strings.HasPrefix(t, replacesPrefix):
			others = append(others, t)
		}
	}
	slices.Sort(decided)
	return decided, others
}

// Owns says whether tags carry the complete proof for this owner.
func (o Owner) Owns(tags []string) bool {
	return slices.Contains(tags, o.Mark()) && slices.Contains(tags, o.ControllerTag())
}

// KeyFromTags returns the key of an object, "" when it has none.
func KeyFromTags(tags []string) string {
	for _, t := range tags {
		if key, ok := strings.CutPrefix(t, "key="); ok {
			return key
		}
	}
	return ""
}

// KeyTag returns how key reads back from tags: shortened as a tag is.
func KeyTag(key string) string {
	return strings.TrimPrefix(Shorten("key="+key), "key=")
}

// Description is the identity of an object that has no tags at create, such as a floating IP.
func (o Owner) Description() string {
	return Shorten(o.descriptionProof() + " gateway=" + o.Namespace + "/" + o.Name)
}

func (o Owner) descriptionProof() string {
	// Both halves of the proof come first and are short enough to survive Shorten on the rest.
	controller := o.Controller
	if len(controller) > 80 {
		controller = controller[:40] + "~" + digest(controller)
	}
	return o.Mark() + " controller=" + controller
}

// OwnsDescription says whether a description carries the complete proof for this owner.
func (o Owner) OwnsDescription(description string) bool {
	proof := o.descriptionProof()
	return description == proof || strings.HasPrefix(description, proof+" ")
}

// MarksOther says whether a description carries a mark of this kind of controller, but not this owner's: of another Gateway, cluster or
// format.
func (o Owner) MarksOther(description string) bool {
	return strings.HasPrefix(description, markPrefix) && !o.OwnsDescription(description)
}

// SecretName is the identity of a Barbican secret. All but the part for people fits into the limit.
func (o Owner) SecretName(key string) string {
	name := []rune(o.SecretNamePrefix() + key + " gateway=" + o.Namespace + "/" + o.Name)
	return string(name[:min(len(name), MaxLength)])
}

// SecretNamePrefix is how the names of all secrets of this owner begin.
func (o Owner) SecretNamePrefix() string { return o.descriptionProof() + " key=" }

// SecretKeyFromName returns the key in the name of a secret; ok is false when the name does not prove that the secret is this
// owner's.
func (o Owner) SecretKeyFromName(name string) (key string, ok bool) {
	rest, ok := strings.CutPrefix(name, o.SecretNamePrefix())
	key, _, _ = strings.Cut(rest, " ")
	return key, ok && key != ""
}

// Mark is what an object says about whom it belongs to. It is read for reports: only Owns, OwnsDescription and SecretKeyFromName prove anything.
type Mark struct {
	// Version is the format of the mark.
	Version string `json:"version"`
	// ClusterID and UID are "" when the mark is of another format, or was shortened.
	ClusterID string `json:"clusterID,omitempty"`
	UID       string `json:"uid,omitempty"`
	// Controller is "" when the object lacks that half of the proof.
	Controller string `json:"controller,omitempty"`
	// Gateway is namespace/name, for people.
	Gateway string `json:"gateway,omitempty"`
	Key     string `json:"key,omitempty"`
}

// SecretPrefix is how the name of every secret with a mark begins.
const SecretPrefix = markPrefix

// ReadTags finds the mark among tags; ok is false when there is none.
func ReadTags(tags []string) (m Mark, ok bool) {
	for _, t := range tags {
		name, value, _ := strings.Cut(t, "=")
		switch {
		case strings.HasPrefix(name, markPrefix):
			m.mark(t)
			ok = true
		case name == "controller":
			m.Controller = value
		case name == "gateway":
			m.Gateway = value
		case name == "key":
			m.Key = value
		}
	}
	return m, ok
}

// ReadDescription finds the mark in the description of a floating IP or in the name of a secret.
func ReadDescription(text string) (m Mark, ok bool) {
	for i, word := range strings.Split(text, " ") {
		name, value, _ := strings.Cut(word, "=")
		switch {
		case i == 0:
			if !strings.HasPrefix(word, markPrefix) {
				return Mark{}, false
			}
			m.mark(word)
		case name == "controller":
			m.Controller = value
		case name == "gateway":
			m.Gateway = value
		case name == "key":
			m.Key = value
		}
	}
	return m, true
}

func (m *Mark) mark(text string) {
	version, owner, _ := strings.Cut(strings.TrimPrefix(text, markPrefix), "=")
	m.Version = version
	if version == markVersion {
		m.ClusterID, m.UID, _ = strings.Cut(owner, "/")
	}
}

// Current says whether the mark is of the format that this version writes, with both halves of the proof.
func (m Mark) Current() bool {
	return m.Version == markVersion && m.ClusterID != "" && m.UID != "" && m.Controller != ""
}

// Of says whether the mark names a cluster and a controller. A long controller name is shortened in descriptions.
func (m Mark) Of(clusterID, controller string) bool {
	shortened := Owner{Controller: controller}.descriptionProof()
	return m.ClusterID == clusterID && (m.Controller == controller || strings.HasSuffix(shortened, " controller="+m.Controller))
}

// LoadBalancerName is the readable name of the load balancer.
func (o Owner) LoadBalancerName() string {
	return Shorten("gw_" + o.ClusterID + "_" + o.Namespace + "_" + o.Name)
}

// Shorten cuts s to MaxLength characters, keeping a readable prefix and a hash of the whole, so that different inputs
// stay different and equal inputs equal.
func Shorten(s string) string {
	if utf8.RuneCountInString(s) <= MaxLength {
		return s
	}
	const hash = 16
	runes := []rune(s)
	return string(runes[:MaxLength-hash-1]) + "~" + digest(s)
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}
