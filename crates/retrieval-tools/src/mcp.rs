//! A server of the Model Context Protocol.
