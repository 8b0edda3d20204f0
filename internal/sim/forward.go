package sim

type forwarder struct{ c *Cloud }

func newForwarder(c *Cloud) *forwarder { return &forwarder{c} }

func (f *forwarder) close() {}

func (c *Cloud) dirty(*loadBalancer) {}

func (c *Cloud) wakeForwarder() {}
