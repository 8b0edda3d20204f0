#!/usr/bin/env bash
# Copies into the chart what config/ already says: CRDs, rules of the roles, ports of the responder, alerts and the dashboard.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
chart=charts/gateway-api-openstack
files=$chart/files
rm -rf "$files" "$chart/crds"
mkdir -p "$files" "$chart/crds"
cp config/crd/gateway-api-openstack.dev_*.yaml "$chart/crds/"
cp config/rbac/cluster_role.yaml config/rbac/role.yaml config/monitoring/alerts.yaml config/monitoring/dashboard.json "$files/"
cp config/components/responder/role.yaml "$files/responder_role.yaml"
cp config/components/responder/service.yaml "$files/responder_service.yaml"
