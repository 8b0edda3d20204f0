package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// GatewayUnsupportedParametersRef is for infrastructure.parametersRef: only the GatewayClass has parameters.
func GatewayUnsupportedParametersRef() Condition {
	return condition(gwv1.GatewayConditionAccepted, metav1.ConditionFalse, gwv1.GatewayReasonInvalidParameters,
		"infrastructure.parametersRef is not supported: the parameters are those of the GatewayClass.")
}
