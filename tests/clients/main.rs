//! The official SDKs as clients of the proxy, and the protocol's conformance suite.

mod conformance;
mod sdks;
