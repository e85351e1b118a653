//! A real Kubernetes control plane for the tests and the demo.
