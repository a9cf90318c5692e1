//! YAML whose mistakes can be shown: where they are, what stands there, and what was probably meant.
//!
//! A [`Document`] is a tree of [`Node`]s that know their way from the root. The YAML library tells places only with
//! errors, so the place of a node is found, when a mistake is to be shown, by walking that way once more and failing
//! at its end. So any check, however late, can point at the very value or key.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::output::escape::{at_most, is_hidden, masked, visible};

/// The largest file that is read, in bytes.
pub const MAX_BYTES: usize = 64 * 1024;

/// How many values a document may hold, with aliases counted as often as they are used.
const MAX_NODES: usize = 10_000;

/// How much of a line is shown, in characters.
const MAX_EXCERPT: usize = 100;

/// How much of a single value is repeated in a sentence, in characters.
const MAX_SHOWN: usize = 40;

/// One step of the way to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The key of the mapping's entry with this index.
    Key(usize),
    /// The value of the mapping's entry with this index.
    Value(usize),
    /// The list's item with this index.
    Item(usize),
}

/// What YAML takes a scalar for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Nothing, or `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
    /// Anything else, and whatever is quoted.
    Text,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A single value, and its characters as they stand in the file, without quotes.
    Scalar(Class, String),
    /// A list.
    List(Vec<Node>),
    /// A mapping: keys and values in the order of the file.
    Map(Vec<(Node, Node)>),
}

/// A value of the document and the way to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    way: Vec<Step>,
    /// What it is.
    pub kind: Kind,
}

impl Node {
    /// The characters of a scalar that is not null.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(class, text) if *class != Class::Null => Some(text),
            _ => None,
        }
    }

    /// Whether nothing stands here.
    pub fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Scalar(Class::Null, _))
    }

    /// The value of a mapping's key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.kind {
            Kind::Map(entries) => entries.iter().find(|(k, _)| k.text() == Some(key)).map(|(_, v)| v),
            _ => None,
        }
    }

    /// What it is, in words fit for a sentence.
    pub fn in_words(&self) -> String {
        match &self.kind {
            Kind::Scalar(Class::Null, _) => "empty".to_owned(),
            Kind::Scalar(Class::Bool, text) => text.clone(),
            Kind::Scalar(Class::Number, text) => format!("the number {}", shown(text)),
            Kind::Scalar(Class::Text, text) => format!("the text `{}`", shown(text)),
            Kind::List(_) => "a list".to_owned(),
            Kind::Map(_) => "a mapping".to_owned(),
        }
    }
}

/// A piece of the file, fit to be repeated in a sentence: bounded, in one line, without what looks like a token.
pub fn shown(text: &str) -> String {
    visible(&masked(&at_most(text, MAX_SHOWN)))
}

/// The candidate that was probably meant by a word, if one is near enough or starts with it. Case, `_` and `-` are
/// alike.
pub fn did_you_mean<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let plain = |s: &str| s.chars().take(MAX_SHOWN * 2).collect::<String>().to_lowercase().replace('_', "-");
    let word = plain(word);
    let allowed = (word.chars().count() / 3).clamp(1, 4);
    candidates
        .into_iter()
        .map(|candidate| {
            let other = plain(candidate);
            let begins = word.chars().count() > 2 && other.starts_with(&word);
            (if begins { 1 } else { strsim::damerau_levenshtein(&word, &other) }, candidate)
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A mistake in a file: what is wrong, where, and what can be done.
///
/// [`fmt::Display`] writes the sentence, `--> FILE:LINE:COLUMN`, the line with a caret under the place, and the hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedError {
    sentence: String,
    hint: Option<String>,
    origin: String,
    place: Option<Box<Place>>,
}

/// A place in a file and the line there, made fit to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    line: usize,
    column: usize,
    excerpt: String,
    /// Characters of the excerpt before the caret.
    offset: usize,
    /// How many characters the caret underlines.
    width: usize,
}

impl LocatedError {
    /// The same with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What is wrong, in one sentence.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    /// What can be done about it.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Line and column, from 1, the column in characters; `None` where the mistake is in no one place.
    pub fn position(&self) -> Option<(usize, usize)> {
        self.place.as_ref().map(|p| (p.line, p.column))
    }

    /// Place and sentence in one line: `FILE:LINE:COLUMN: SENTENCE`.
    pub fn in_one_line(&self) -> String {
        match &self.place {
            Some(p) => format!("{}:{}:{}: {}", self.origin, p.line, p.column, self.sentence),
            None => format!("{}: {}", self.origin, self.sentence),
        }
    }
}

impl fmt::Display for LocatedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.sentence)?;
        match &self.place {
            None => write!(f, "  --> {}", self.origin)?,
            Some(p) => {
                let number = p.line.to_string();
                let margin = " ".repeat(number.len());
                writeln!(f, " {margin}--> {}:{}:{}", self.origin, p.line, p.column)?;
                writeln!(f, " {margin} |")?;
                writeln!(f, " {number} | {}", p.excerpt)?;
                write!(f, " {margin} | {}{}", " ".repeat(p.offset), "^".repeat(p.width))?;
            }
        }
        match &self.hint {
            Some(hint) => write!(f, "\n\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for LocatedError {}

/// A YAML file that was read into a tree.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    text: &'a str,
    origin: String,
    /// The one value of the file; null for an empty file.
    pub root: Node,
}

impl<'a> Document<'a> {
    /// Reads a file; `origin` is its name in errors.
    ///
    /// # Errors
    ///
    /// The file is too large, no YAML, holds more than one document, a key twice, a custom tag, or more or deeper
    /// values than can be meant.
    pub fn parse(text: &'a str, origin: &str) -> Result<Self, LocatedError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let origin = visible(&at_most(origin, 200));
        let null = Node { way: Vec::new(), kind: Kind::Scalar(Class::Null, String::new()) };
        let mut document = Self { text, origin, root: null };
        if text.len() > MAX_BYTES {
            let sentence = format!("the file has {} bytes, and at most {MAX_BYTES} are read", text.len());
            return Err(document.nowhere(sentence));
        }
        let left = Cell::new(MAX_NODES);
        let seed = ReadNode { way: Vec::new(), left: &left };
        let mut root = match seed.deserialize(serde_yaml::Deserializer::from_str(text)) {
            Ok(root) => root,
            Err(error) => return Err(document.syntax(&error)),
        };
        FillText(&mut root)
            .deserialize(serde_yaml::Deserializer::from_str(text))
            .map_err(|error| document.syntax(&error))?;
        document.root = root;
        document.refuse_double_keys(&document.root)?;
        Ok(document)
    }

    fn refuse_double_keys(&self, node: &Node) -> Result<(), LocatedError> {
        match &node.kind {
            Kind::Scalar(..) => Ok(()),
            Kind::List(items) => items.iter().try_for_each(|item| self.refuse_double_keys(item)),
            Kind::Map(entries) => {
                let mut seen = std::collections::BTreeSet::new();
                for (key, value) in entries {
                    let Kind::Scalar(_, name) = &key.kind else {
                        return Err(self.error_at(key, "a key must be a plain word, not a list or a mapping"));
                    };
                    if !seen.insert(name) {
                        let sentence = format!("the key `{}` stands here twice", shown(name));
                        return Err(self.error_at(key, sentence).with_hint("keep one of the two"));
                    }
                    self.refuse_double_keys(value)?;
                }
                Ok(())
            }
        }
    }

    /// A mistake at a node of this document.
    pub fn error_at(&self, node: &Node, sentence: impl Into<String>) -> LocatedError {
        let place = self.locate(&node.way).map(|(line, column)| {
            let raw = match &node.kind {
                Kind::Scalar(_, text) => text.as_str(),
                Kind::List(_) | Kind::Map(_) => "",
            };
            Box::new(self.place(line, column, raw))
        });
        LocatedError { sentence: sentence.into(), hint: None, origin: self.origin.clone(), place }
    }

    fn nowhere(&self, sentence: impl Into<String>) -> LocatedError {
        LocatedError { sentence: sentence.into(), hint: None, origin: self.origin.clone(), place: None }
    }

    /// Line and column, from 1, of the end of a way.
    fn locate(&self, way: &[Step]) -> Option<(usize, usize)> {
        let error = Follow(way).deserialize(serde_yaml::Deserializer::from_str(self.text)).err()?;
        error.location().map(|l| (l.line(), l.column()))
    }

    /// The place with its line. `raw` is what stands there, if that is known.
    fn place(&self, line: usize, column: usize, raw: &str) -> Place {
        let full: Vec<char> = without_secrets(line_of(self.text, line)).chars().collect();
        let at = column.saturating_sub(1).min(full.len());
        let rest = full.get(at..).unwrap_or_default();
        let raw: Vec<char> = raw.chars().collect();
        let width = if let Some(quote @ ('"' | '\'')) = rest.first() {
            rest.iter().skip(1).position(|c| c == quote).map_or(1, |n| n.saturating_add(2))
        } else if !raw.is_empty() && masked_alike(rest, &raw) {
            raw.len()
        } else {
            1
        };
        let start = if full.len() > MAX_EXCERPT { at.saturating_sub(MAX_EXCERPT / 3) } else { 0 };
        let end = full.len().min(start.saturating_add(MAX_EXCERPT));
        let part = |from: usize, to: usize| {
            visible(&full.get(from..to.max(from)).unwrap_or_default().iter().collect::<String>())
        };
        let mut before = part(start, at);
        if start > 0 {
            before.insert(0, '…');
        }
        let marked = part(at, at.saturating_add(width).min(end));
        let after = part(at.saturating_add(width).min(end), end);
        let tail = if end < full.len() { "…" } else { "" };
        let excerpt = format!("{before}{marked}{after}{tail}").trim_end().to_owned();
        Place { line, column, offset: before.chars().count(), width: marked.chars().count().max(1), excerpt }
    }

    /// An error of the YAML library in this form.
    fn syntax(&self, error: &serde_yaml::Error) -> LocatedError {
        let full = error.to_string();
        if full.contains("more than one document") {
            let second = serde_yaml::Deserializer::from_str(self.text).nth(1);
            let at = second.and_then(|d| Follow(&[]).deserialize(d).err()).and_then(|e| e.location());
            return LocatedError {
                sentence: "the file holds more than one YAML document".to_owned(),
                hint: Some("keep one document and take the `---` between them out".to_owned()),
                origin: self.origin.clone(),
                place: at.map(|l| Box::new(self.place(l.line(), l.column(), ""))),
            };
        }
        let position = error.location().map(|l| (l.line(), l.column()));
        let place = position.map(|(line, column)| Box::new(self.place(line, column, "")));
        let mut located = LocatedError { sentence: String::new(), hint: None, origin: self.origin.clone(), place };
        let words = without_position(&full);
        if let Some(own) = words.split_once(OWN).map(|(_, own)| own) {
            own.clone_into(&mut located.sentence);
            return located;
        }
        let line = position.map(|(line, _)| line_of(self.text, line)).unwrap_or_default();
        if words.contains("control characters") {
            // The library tells this place only as an offset.
            let is_forbidden = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}');
            if let Some((before, _)) = self.text.split_once(is_forbidden) {
                let lines = before.split('\n').count();
                let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()).saturating_add(1);
                located.place = Some(Box::new(self.place(lines, column, "")));
            }
            "the file holds a control character".clone_into(&mut located.sentence);
            return located;
        }
        let indent: String = line.chars().take_while(|c| c.is_whitespace()).collect();
        if let (Some(at), Some((line, _))) = (indent.chars().position(|c| c == '\t'), position) {
            located.place = Some(Box::new(self.place(line, at.saturating_add(1), "")));
            "YAML allows no tabs for indentation".clone_into(&mut located.sentence);
            return located.with_hint("indent with spaces");
        }
        if words.contains("recursion limit") {
            "the values are nested too deeply".clone_into(&mut located.sentence);
            return located;
        }
        if words.contains("repetition limit") {
            "aliases repeat too much".clone_into(&mut located.sentence);
            return located.with_hint("write the values out, or use fewer aliases");
        }
        located.sentence = format!("this is not valid YAML: {}", visible(&at_most(words, 160)));
        if line.contains("[bot]") {
            return located.with_hint("put names that hold brackets in quotes: \"claude[bot]\"");
        }
        if words.contains("cannot start any token") || words.contains("alias") || words.contains("anchor") {
            return located.with_hint("put the value in quotes: \"@claude\"");
        }
        located
    }
}

/// Reads a file into a type of one's own by serde, with this module's bounds and errors. For an unknown field or
/// variant, the hint names the one that was probably meant.
///
/// # Errors
///
/// Whatever [`Document::parse`] refuses, and what the type's own deserialisation refuses, at the value in question.
pub fn from_yaml<T: DeserializeOwned>(text: &str, origin: &str) -> Result<T, LocatedError> {
    let document = Document::parse(text, origin)?;
    T::deserialize(serde_yaml::Deserializer::from_str(document.text)).map_err(|error| {
        let full = error.to_string();
        let words = without_position(&full);
        let place =
            error.location().map(|l| Box::new(document.place(l.line(), l.column(), named(words).unwrap_or_default())));
        let hint = named(words).and_then(|wrong| {
            let candidates: Vec<&str> = words.split('`').skip(3).step_by(2).collect();
            did_you_mean(wrong, candidates).map(|meant| format!("did you mean `{meant}`?"))
        });
        let sentence = visible(&masked(&at_most(words, 400)));
        LocatedError { sentence, hint, origin: document.origin.clone(), place }
    })
}

/// The word between the first pair of backticks, in messages about unknown fields and variants.
fn named(words: &str) -> Option<&str> {
    words.contains("unknown ").then(|| words.split('`').nth(1))?
}

/// The library's message without its ` at line L column C`.
fn without_position(message: &str) -> &str {
    message.split_once(" at line ").map_or(message, |(words, _)| words)
}

/// Whether `rest` starts with `raw`, where asterisks may stand for what was masked.
fn masked_alike(rest: &[char], raw: &[char]) -> bool {
    rest.len() >= raw.len() && rest.iter().zip(raw).all(|(shown, real)| shown == real || *shown == '*')
}

/// The line with this number, from 1, by YAML's rules of where lines end.
fn line_of(text: &str, number: usize) -> &str {
    let mut rest = text;
    for _ in 1..number {
        let Some(end) = rest.find(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) else { return "" };
        let tail = rest.get(end..).unwrap_or_default();
        let ending = if tail.starts_with("\r\n") { 2 } else { tail.chars().next().map_or(0, char::len_utf8) };
        rest = tail.get(ending..).unwrap_or_default();
    }
    rest.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).next().unwrap_or_default()
}

/// The line without what looks like a token, and without the value of a key that names a secret.
fn without_secrets(line: &str) -> String {
    let line = masked(line);
    let Some((key, value)) = line.split_once(':') else { return line };
    let name = key.to_ascii_lowercase();
    if ["secret", "token", "password", "passwd", "api-key", "api_key", "private"].iter().any(|w| name.contains(w)) {
        let hidden: String = value.chars().map(|c| if c.is_whitespace() { c } else { '*' }).collect();
        return format!("{key}:{hidden}");
    }
    line
}

/// Marks messages that are this module's own, among those of the library, which puts the way in front.
const OWN: &str = "\u{1}";

fn own<E: de::Error>(sentence: &str) -> E {
    E::custom(format_args!("{OWN}{sentence}"))
}

/// Reads the shape of a node: the classes of scalars, but not yet their characters.
struct ReadNode<'b> {
    way: Vec<Step>,
    left: &'b Cell<usize>,
}

impl ReadNode<'_> {
    fn child(&self, step: Step) -> ReadNode<'_> {
        let mut way = self.way.clone();
        way.push(step);
        ReadNode { way, left: self.left }
    }

    fn scalar<E: de::Error>(self, class: Class) -> Result<Node, E> {
        self.node(Kind::Scalar(class, String::new()))
    }

    fn node<E: de::Error>(self, kind: Kind) -> Result<Node, E> {
        match self.left.get().checked_sub(1) {
            None => Err(own("the file holds too many values")),
            Some(left) => {
                self.left.set(left);
                Ok(Node { way: self.way, kind })
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for ReadNode<'_> {
    type Value = Node;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ReadNode<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Node, E> {
        self.scalar(Class::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Node, E> {
        self.scalar(Class::Null)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Node, E> {
        self.scalar(Class::Bool)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Node, E> {
        self.scalar(Class::Number)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Node, E> {
        self.scalar(Class::Number)
    }

    fn visit_i128<E: de::Error>(self, _: i128) -> Result<Node, E> {
        self.scalar(Class::Number)
    }

    fn visit_u128<E: de::Error>(self, _: u128) -> Result<Node, E> {
        self.scalar(Class::Number)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Node, E> {
        self.scalar(Class::Number)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Node, E> {
        self.scalar(Class::Text)
    }

    fn visit_enum<A: de::EnumAccess<'de>>(self, _: A) -> Result<Node, A::Error> {
        Err(own("custom YAML tags (`!…`) mean nothing here"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self.child(Step::Item(items.len())))? {
            items.push(item);
        }
        self.node(Kind::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key_seed(self.child(Step::Key(entries.len())))? {
            let value = map.next_value_seed(self.child(Step::Value(entries.len())))?;
            entries.push((key, value));
        }
        self.node(Kind::Map(entries))
    }
}

/// Fills in the characters of the scalars of a node whose shape is known.
struct FillText<'n>(&'n mut Node);

impl<'de> DeserializeSeed<'de> for FillText<'_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match &self.0.kind {
            // An empty file has no characters at all.
            Kind::Scalar(Class::Null, _) => deserializer.deserialize_ignored_any(IgnoredAny).map(|_| ()),
            Kind::Scalar(..) => deserializer.deserialize_str(self),
            Kind::List(_) => deserializer.deserialize_seq(self),
            Kind::Map(_) => deserializer.deserialize_map(self),
        }
    }
}

impl<'de> Visitor<'de> for FillText<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the same value as before")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        if let Kind::Scalar(_, own) = &mut self.0.kind {
            text.clone_into(own);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        if let Kind::List(items) = &mut self.0.kind {
            for item in items {
                seq.next_element_seed(FillText(item))?;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if let Kind::Map(entries) = &mut self.0.kind {
            for (key, value) in entries {
                map.next_key_seed(FillText(key))?;
                map.next_value_seed(FillText(value))?;
            }
        }
        Ok(())
    }
}

/// Walks a way and fails at its end, so that the library tells the place.
struct Follow<'w>(&'w [Step]);

impl<'de> DeserializeSeed<'de> for Follow<'_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Follow<'_> {
    fn arrive<E: de::Error>() -> Result<(), E> {
        Err(own("here"))
    }
}

impl<'de> Visitor<'de> for Follow<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the way to go on")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Self::arrive()
    }

    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        Self::arrive()
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        Self::arrive()
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        Self::arrive()
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        Self::arrive()
    }

    fn visit_i128<E: de::Error>(self, _: i128) -> Result<(), E> {
        Self::arrive()
    }

    fn visit_u128<E: de::Error>(self, _: u128) -> Result<(), E> {
        Self::arrive()
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        Self::arrive()
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        Self::arrive()
    }

    fn visit_enum<A: de::EnumAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Self::arrive()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Some((Step::Item(index), rest)) = self.0.split_first() else { return Self::arrive() };
        for _ in 0..*index {
            seq.next_element::<IgnoredAny>()?;
        }
        seq.next_element_seed(Follow(rest)).map(|_| ())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (index, on_key, rest) = match self.0.split_first() {
            Some((Step::Key(index), rest)) => (*index, true, rest),
            Some((Step::Value(index), rest)) => (*index, false, rest),
            Some((Step::Item(_), _)) | None => return Self::arrive(),
        };
        for _ in 0..index {
            map.next_entry::<IgnoredAny, IgnoredAny>()?;
        }
        if on_key {
            return map.next_key_seed(Follow(rest)).map(|_| ());
        }
        map.next_key::<IgnoredAny>()?;
        map.next_value_seed(Follow(rest))
    }
}

/// One key of a mapping with its value, as a check wants them.
#[derive(Clone, Copy, Debug)]
pub struct Field<'d> {
    document: &'d Document<'d>,
    /// The key's name in sentences.
    pub name: &'d str,
    /// The key.
    pub key: &'d Node,
    /// The value.
    pub value: &'d Node,
}

impl<'d> Field<'d> {
    /// The fields of a mapping; none where nothing stands.
    ///
    /// # Errors
    ///
    /// The node is no mapping. `what` names it.
    pub fn all(document: &'d Document<'d>, node: &'d Node, what: &str) -> Result<Vec<Self>, LocatedError> {
        match &node.kind {
            Kind::Map(entries) => Ok(entries
                .iter()
                .map(|(key, value)| Self {
                    document,
                    name: match &key.kind {
                        Kind::Scalar(_, text) => text,
                        Kind::List(_) | Kind::Map(_) => "",
                    },
                    key,
                    value,
                })
                .collect()),
            _ if node.is_null() => Ok(Vec::new()),
            _ => Err(document.error_at(node, format!("{what} must be a mapping of keys, not {}", node.in_words()))),
        }
    }

    /// A mistake at the value.
    pub fn wrong(&self, sentence: impl Into<String>) -> LocatedError {
        self.document.error_at(self.value, sentence)
    }

    /// A mistake at the key.
    pub fn wrong_key(&self, sentence: impl Into<String>) -> LocatedError {
        self.document.error_at(self.key, sentence)
    }

    /// A mistake at a node inside the value.
    pub fn wrong_at(&self, node: &Node, sentence: impl Into<String>) -> LocatedError {
        self.document.error_at(node, sentence)
    }

    /// The fields of the value, a mapping.
    pub fn fields(&self) -> Result<Vec<Field<'d>>, LocatedError> {
        Field::all(self.document, self.value, &format!("`{}`", shown(self.name)))
    }

    /// `true` or `false`.
    pub fn bool(&self) -> Result<bool, LocatedError> {
        if let Kind::Scalar(Class::Bool, text) = &self.value.kind {
            return Ok(text.eq_ignore_ascii_case("true"));
        }
        let error = self.must_be("true or false");
        Err(match self.value.text().map(str::to_ascii_lowercase).as_deref() {
            Some("yes" | "on" | "y" | "1" | "true") => error.with_hint("write `true`, without quotes"),
            Some("no" | "off" | "n" | "0" | "false") => error.with_hint("write `false`, without quotes"),
            _ => error,
        })
    }

    /// A whole number within bounds.
    pub fn count(&self, least: u32, most: u32) -> Result<u32, LocatedError> {
        let number = match &self.value.kind {
            Kind::Scalar(Class::Number, text) => text.parse::<u32>().ok(),
            _ => None,
        };
        number
            .filter(|n| (least..=most).contains(n))
            .ok_or_else(|| self.must_be(&format!("a whole number from {least} to {most}")))
    }

    /// A text that is not empty, in one line of at most `most` characters.
    pub fn text(&self, most: usize) -> Result<String, LocatedError> {
        self.text_of(self.value, most)
    }

    fn text_of(&self, node: &Node, most: usize) -> Result<String, LocatedError> {
        let name = shown(self.name);
        let Some(text) = node.text() else {
            return Err(self.wrong_at(node, format!("`{name}` must be a text, not {}", node.in_words())));
        };
        let problem = if text.trim().is_empty() {
            "is empty".to_owned()
        } else if text.trim() != text {
            "starts or ends with white space".to_owned()
        } else if text.contains(is_hidden) {
            "holds a line break or a character that cannot be seen".to_owned()
        } else if text.chars().count() > most {
            format!("is longer than {most} characters")
        } else {
            return Ok(text.to_owned());
        };
        Err(self.wrong_at(node, format!("a text of `{name}` {problem}")))
    }

    /// The items of a list, or the one value that stands in its place; none where nothing stands.
    pub fn items(&self) -> Result<&'d [Node], LocatedError> {
        match &self.value.kind {
            Kind::List(items) => Ok(items),
            Kind::Scalar(Class::Null, _) => Ok(&[]),
            Kind::Scalar(..) => Ok(std::slice::from_ref(self.value)),
            Kind::Map(_) => Err(self.must_be("a list")),
        }
    }

    /// A list of texts like [`Field::text`].
    pub fn texts(&self, most: usize) -> Result<Vec<String>, LocatedError> {
        self.items()?.iter().map(|item| self.text_of(item, most)).collect()
    }

    /// One of a few words.
    pub fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, LocatedError> {
        self.word_of(self.value, words)
    }

    /// One of a few words, at a node inside the value.
    pub fn word_of<T: Copy>(&self, node: &Node, words: &[(&str, T)]) -> Result<T, LocatedError> {
        let found = node.text().and_then(|text| words.iter().find(|(word, _)| *word == text));
        found.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            let name = shown(self.name);
            let sentence = format!("`{name}` knows {}, not {}", listed(&names), node.in_words());
            let meant = node.text().and_then(|text| did_you_mean(text, words.iter().map(|(word, _)| *word)));
            let error = self.wrong_at(node, sentence);
            match meant {
                Some(meant) => error.with_hint(format!("did you mean `{meant}`?")),
                None => error,
            }
        })
    }

    /// That the value must be something else.
    pub fn must_be(&self, what: &str) -> LocatedError {
        self.wrong(format!("`{}` must be {what}, not {}", shown(self.name), self.value.in_words()))
    }
}

/// Words in a sentence: `a, b and c`.
pub fn listed(words: &[String]) -> String {
    match words.split_last() {
        None => "nothing".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}
