//! The arguments of a call by name: a list, as most calls have few and the compiler never looks one up.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};
use swc_atoms::Atom;

use super::ArgumentValue;

/// The arguments of a call by name, in source order. `...` stands for a value that is passed or spread as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Arguments {
    list: Vec<(Atom, ArgumentValue)>,
}

impl Arguments {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&ArgumentValue> {
        self.list.iter().rev().find(|(known, _)| *known == *name).map(|(_, value)| value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &ArgumentValue)> {
        self.list.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl FromIterator<(Atom, ArgumentValue)> for Arguments {
    fn from_iter<I: IntoIterator<Item = (Atom, ArgumentValue)>>(arguments: I) -> Self {
        let arguments = arguments.into_iter();
        // Not `collect`, which would build the list in place of its source and then move it.
        let mut list = Vec::with_capacity(arguments.size_hint().0);
        list.extend(arguments);
        Self { list }
    }
}

impl IntoIterator for Arguments {
    type Item = (Atom, ArgumentValue);
    type IntoIter = std::vec::IntoIter<(Atom, ArgumentValue)>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl Serialize for Arguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ByName;
        impl<'de> Visitor<'de> for ByName {
            type Value = Arguments;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of arguments")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Arguments, A::Error> {
                let mut list = Vec::with_capacity(map.size_hint().unwrap_or_default().min(64));
                while let Some(argument) = map.next_entry()? {
                    list.push(argument);
                }
                // Sorted by name, whatever order the map has.
                list.sort_by(|(one, _): &(Atom, ArgumentValue), (other, _)| one.as_str().cmp(other.as_str()));
                Ok(Arguments { list })
            }
        }
        deserializer.deserialize_map(ByName)
    }
}
