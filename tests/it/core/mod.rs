//! The pure core: cases as data, and properties.

pub(crate) mod case;
mod decide;
mod ended;
mod execution;
mod held;
mod properties;
mod records;
mod text;
