// Package monitoring checks config/monitoring: that Prometheus takes the alerts, that every metric in an alert or in a panel of the
// dashboard is one that the controller has, and that each alert has its page in docs/runbook/alerts. It is a module of its own, so that
// Prometheus is no dependency of the controller.
package monitoring
