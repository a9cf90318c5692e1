//! The policy file: YAML to a validated policy.
