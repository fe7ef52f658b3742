//! Specs, which say which capability is meant: a name, `org.project:name` or an FQDN (with or without its hash), each with
//! an optional `@version`.

use crate::{
    error::{Error, Result},
    fqdn::Fqdn,
    name::{check_name, check_part},
    version::VersionSpec,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec<'a> {
    pub target: Target<'a>,
    /// The target as it was written, for messages.
    pub target_text: &'a str,
    pub version: VersionSpec,
    /// The version as it was written, for messages.
    pub version_text: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// In the current scope.
    Name(&'a str),
    /// In the given scope.
    Scoped {
        org: &'a str,
        project: &'a str,
        name: &'a str,
    },
    Fqdn(Fqdn<'a>),
    /// An FQDN without its hash, valid if only one capability matches.
    Unhashed {
        org: &'a str,
        project: &'a str,
        namespace: &'a str,
        action: &'a str,
    },
}

impl<'a> Spec<'a> {
    pub fn parse(text: &'a str) -> Result<Self> {
        let (target_text, version_text) = text.split_once('@').unwrap_or((text, "latest"));
        Ok(Spec {
            target: Target::parse(target_text)?,
            target_text,
            version: VersionSpec::parse(version_text)?,
            version_text,
        })
    }
}

impl<'a> Target<'a> {
    fn parse(text: &'a str) -> Result<Self> {
        match (text.find('.'), text.find(':')) {
            (None, _) => check_name(text).map(|()| Target::Name(text)),
            (Some(dot), Some(colon)) if dot < colon => {
                let (org, project, name) = (&text[..dot], &text[dot + 1..colon], &text[colon + 1..]);
                check_part("org", org)?;
                check_part("project", project)?;
                check_name(name)?;
                Ok(Target::Scoped { org, project, name })
            }
            (Some(_), Some(_)) => Err(check_name(text).err().unwrap_or_else(|| Error::InvalidFqdn {
                value: text.to_owned(),
                detail: "It has a colon.".to_owned(),
            })),
            (Some(_), None) => match text.split('.').collect::<Vec<_>>()[..] {
                [org, project, namespace, action] => {
                    check_part("org", org)?;
                    check_part("project", project)?;
                    check_part("namespace", namespace)?;
                    check_part("action", action)?;
                    Ok(Target::Unhashed { org, project, namespace, action })
                }
                _ => Fqdn::parse(text).map(Target::Fqdn),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_form() {
        for (text, target, version) in [
            ("my-reader", Target::Name("my-reader"), VersionSpec::Latest),
            ("fs:read_json@v1", Target::Name("fs:read_json"), VersionSpec::Major(1)),
            (
                "acme.shared:fs:read_json@latest",
                Target::Scoped { org: "acme", project: "shared", name: "fs:read_json" },
                VersionSpec::Latest,
            ),
            (
                "acme.webapp.fs.read_json.a7f3@v2",
                Target::Fqdn(Fqdn::parse("acme.webapp.fs.read_json.a7f3").unwrap()),
                VersionSpec::Major(2),
            ),
            (
                "marketplace.public.fs.read_json@v1",
                Target::Unhashed {
                    org: "marketplace",
                    project: "public",
                    namespace: "fs",
                    action: "read_json",
                },
                VersionSpec::Major(1),
            ),
        ] {
            let spec = Spec::parse(text).unwrap();
            assert_eq!((spec.target, spec.version), (target, version), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            "@v1",
            "a@",
            "a@b@c",
            "a.b",
            "a.b.c:d",
            "a:b.c",
            ".a:b",
            "a.:b",
            "a.b:",
            "a b",
            "a.b.c.d.e",
            "a.b.c.",
            "a.b.c.9",
        ] {
            assert!(Spec::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_judged_without_panic(text in ".{0,200}") {
            let _ = Spec::parse(&text);
        }

        #[test]
        fn anything_near_a_spec_is_judged_without_panic(text in "[a-z.:@v0-9_-]{0,60}") {
            let _ = Spec::parse(&text);
        }
    }
}
