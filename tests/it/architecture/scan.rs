//! Reads the paths out of a source file: the tokens of the language, so that comments, strings and line breaks do not
//! mislead it. Unit tests inside the file are left out.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// What a source file names.
pub(super) struct Source {
    /// Its place in the tree of modules.
    pub(super) module: Vec<String>,
    /// Every path, with `use` trees spelled out. A macro is a path that ends in `name!`.
    pub(super) paths: BTreeSet<Vec<String>>,
}

pub(super) fn scan(file: &str, text: &str) -> Source {
    let inner = file.strip_prefix("src/").unwrap().strip_suffix(".rs").unwrap();
    let module = inner.strip_suffix("/mod").unwrap_or(inner).split('/').map(str::to_owned).collect();
    let tokens: TokenStream = text.parse().unwrap_or_else(|e| panic!("{file}: {e}"));
    let mut paths = BTreeSet::new();
    collect(tokens, &[], &mut paths);
    Source { module, paths }
}

impl Source {
    /// Whether a path holds the parts of `wanted`, one after the other.
    pub(super) fn holds(&self, wanted: &str) -> bool {
        let wanted: Vec<&str> = wanted.split("::").collect();
        self.paths.iter().any(|path| path.windows(wanted.len()).any(|window| window == wanted))
    }

    /// The part of the crate that a path leads into, if it leads into one.
    pub(super) fn part_of(&self, path: &[String], parts: &BTreeSet<String>) -> Option<String> {
        let mut here = self.module.clone();
        let mut rest = path.iter().map(String::as_str).peekable();
        let first = *rest.peek()?;
        match first {
            "crate" | "run_guard" => {
                here.clear();
                rest.next();
            }
            "self" | "super" => {}
            _ => return None,
        }
        while let Some(step) = rest.next_if(|step| matches!(*step, "self" | "super")) {
            if step == "super" {
                here.pop();
            }
        }
        let part = here.first().map(String::as_str).or_else(|| rest.next())?;
        parts.contains(part).then(|| part.to_owned())
    }
}

/// Puts the paths of a token stream into `paths`, each behind `prefix`.
fn collect(tokens: TokenStream, prefix: &[String], paths: &mut BTreeSet<Vec<String>>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    let mut path: Vec<String> = prefix.to_vec();
    let mut end = |path: &mut Vec<String>| {
        if path.len() > prefix.len() {
            paths.insert(path.clone());
        }
        path.truncate(prefix.len());
    };
    let mut groups = Vec::new();
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token {
            TokenTree::Ident(name) => {
                // A path goes on only after `::`.
                if path.len() > prefix.len() && !colons(&tokens, at.wrapping_sub(3)) {
                    end(&mut path);
                }
                path.push(name.to_string().trim_start_matches("r#").to_owned());
                if is_punct(tokens.get(at), '!') && !is_punct(tokens.get(at + 1), '=') {
                    let name = path.pop().unwrap();
                    path.push(format!("{name}!"));
                    end(&mut path);
                }
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => {}
            TokenTree::Punct(punct) if punct.as_char() == '#' && is_test_only(tokens.get(at)) => {
                end(&mut path);
                // To the end of the item: its body, or a semicolon.
                while let Some(token) = tokens.get(at) {
                    at += 1;
                    let body = matches!(token, TokenTree::Group(g) if g.delimiter() == Delimiter::Brace);
                    if body || is_punct(Some(token), ';') {
                        break;
                    }
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => end(&mut path),
            TokenTree::Group(group) => {
                let is_tree = group.delimiter() == Delimiter::Brace && at >= 3 && colons(&tokens, at - 3);
                let inner = if is_tree { path.clone() } else { Vec::new() };
                if is_tree {
                    path.truncate(prefix.len());
                } else {
                    end(&mut path);
                }
                groups.push((group.stream(), inner));
            }
        }
    }
    end(&mut path);
    for (stream, inner) in groups {
        collect(stream, &inner, paths);
    }
}

/// Whether `::` stands at this place.
fn colons(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens.get(at), ':') && is_punct(tokens.get(at.wrapping_add(1)), ':')
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

/// Whether a group is the inside of `#[cfg(test)]`.
fn is_test_only(token: Option<&TokenTree>) -> bool {
    let Some(TokenTree::Group(group)) = token else { return false };
    let text: String = group.stream().to_string().split_whitespace().collect();
    text == "cfg(test)"
}
