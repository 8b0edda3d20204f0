// Command release builds everything that a release consists of, without a container daemon: static binaries, a multi-arch OCI image
// layout from scratch, the Helm chart, the CRDs, a CycloneDX bill of materials for each binary, a provenance statement and checksums.
//
// The output is a function of the commit and the Go version: times are those of the commit, archives are sorted, paths are trimmed.
// `make release-check` builds twice, in two directories, and compares. The image is FROM scratch: the binary carries the public
// certificate authorities (golang.org/x/crypto/x509roots/fallback) for clouds whose APIs use one; a private one is named by cacert in
// clouds.yaml. Signatures are made over SHA256SUMS with an SSH key when one is given, and checked with ssh-keygen -Y verify.
package main
