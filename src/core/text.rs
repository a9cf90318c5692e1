//! Requests in text: where a person really speaks to the agent, and where the words are only shown.
//!
//! A body is read as Markdown, as GitHub renders it. A request counts where the phrase stands in text that a reader
//! sees as the writer's own words: paragraphs, headings, items, cells, link texts, and the inside of HTML such as
//! `<details>`. It does not count in a quote, in code, in an HTML comment, in an image's replacement text, or struck out.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::key::Digest;

/// The longest text that is parsed, in bytes: GitHub's limit of a body is 65,536 characters of at most 4 bytes.
pub const MAX_TEXT_BYTES: usize = 65_536 * 4;

/// The longest HTML tag that is taken for one, in bytes.
const MAX_TAG_BYTES: usize = 1024;

/// Stands for something that is shown, but is no text: it is part of no phrase and keeps its two sides apart.
const OBJECT: char = '\u{fffc}';

/// HTML elements whose inside is a quote, code or not shown.
const HIDING: [&str; 10] = ["blockquote", "code", "pre", "kbd", "samp", "del", "s", "strike", "script", "style"];

/// HTML elements that stand within a line; any other tag starts a new line.
const WITHIN_A_LINE: [&str; 22] = [
    "a", "abbr", "b", "bdo", "cite", "code", "del", "dfn", "em", "font", "i", "ins", "kbd", "mark", "q", "s", "samp",
    "small", "span", "strike", "strong", "u",
];

/// One request: the plain text of the paragraph, list item, heading or title that holds the phrase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The text with white space folded.
    pub text: String,
}

/// The requests in a Markdown text: each block of the writer's own words in which `phrase` stands between white space
/// or an end and white space, an end or one of `.,!?;:`, ignoring case.
pub fn requests(markdown: &str, phrase: &str) -> Vec<Request> {
    let phrase = folded_lower(phrase);
    if phrase.is_empty() {
        return Vec::new();
    }
    plain_blocks(bounded(markdown))
        .into_iter()
        .map(|block| Request { text: fold_space(&block) })
        .filter(|request| holds_phrase(&request.text, &phrase))
        .collect()
}

/// The requests in a title, at most one. A title is one line in which only code spans are markup: what starts like a
/// heading, an item, a quote or a fence is plain text.
pub fn requests_in_title(title: &str, phrase: &str) -> Vec<Request> {
    // A space written as a character reference is text to the parser, so that no block but a paragraph can start.
    let line = fold_space(bounded(title));
    requests(&format!("&#32;{line}"), phrase)
}

/// The digest of what the requests ask, ignoring white space.
pub fn digest_of(requests: &[Request]) -> Digest {
    let joined: Vec<&str> = requests.iter().map(|r| r.text.as_str()).collect();
    Digest::of(&joined.join("\n"))
}

/// Whether a comment only says that the agent is at work: by a run that is over it is no result. The form is that of
/// claude-code-action's tracking comment (an ellipsis, or one to three dots in older versions).
pub fn is_working_notice(body: &str) -> bool {
    body.trim_start().strip_prefix("Claude Code is working").is_some_and(|rest| rest.starts_with(['\u{2026}', '.']))
}

/// Whether a comment is an agent's report on a workflow run of this repository, by its form: the first words of
/// claude-code-action's tracking comment, and the link to the run. The form alone proves nothing: people paste it.
pub fn is_agents_report(body: &str, repository: &str) -> bool {
    let body = body.trim_start();
    let opens = is_working_notice(body)
        || ["**Claude finished ", "**Claude encountered an error"].iter().any(|words| body.starts_with(words));
    opens && body.to_ascii_lowercase().contains(&format!("/{}/actions/runs/", repository.to_ascii_lowercase()))
}

/// The text up to the limit, cut at a character boundary.
fn bounded(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

/// The blocks of the writer's own words.
fn plain_blocks(markdown: &str) -> Vec<String> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS | Options::ENABLE_FOOTNOTES;
    let mut blocks = Blocks::default();
    for event in Parser::new_ext(markdown, options) {
        blocks.take(event);
    }
    blocks.close();
    blocks.done
}

/// Collects blocks from the parser's events.
#[derive(Default)]
struct Blocks {
    done: Vec<String>,
    open: String,
    /// How many constructs are open whose text is not the writer's own words.
    hidden: usize,
    /// The HTML block that is being collected: the parser gives it line by line.
    html: Option<String>,
    /// The hiding HTML elements that are open.
    elements: Vec<&'static str>,
}

impl Blocks {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(Tag::BlockQuote(_) | Tag::CodeBlock(_)) => {
                self.close();
                self.hidden += 1;
            }
            Event::End(TagEnd::BlockQuote(_) | TagEnd::CodeBlock) => {
                self.hidden = self.hidden.saturating_sub(1);
                self.close();
            }
            Event::Start(Tag::Image { .. } | Tag::Strikethrough) => {
                self.open.push(OBJECT);
                self.hidden += 1;
            }
            Event::End(TagEnd::Image | TagEnd::Strikethrough) => self.hidden = self.hidden.saturating_sub(1),
            Event::Start(Tag::HtmlBlock) => {
                self.close();
                self.html = Some(String::new());
            }
            Event::End(TagEnd::HtmlBlock) => {
                if let Some(html) = self.html.take() {
                    self.take_html(&html);
                }
                self.close();
            }
            Event::Start(
                Tag::Paragraph | Tag::Heading { .. } | Tag::Item | Tag::TableCell | Tag::FootnoteDefinition(_),
            )
            | Event::End(
                TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::Item | TagEnd::TableCell | TagEnd::FootnoteDefinition,
            ) => self.close(),
            Event::Text(text) => match &mut self.html {
                Some(html) => html.push_str(&text),
                None => self.push(&text),
            },
            Event::Html(html) => match &mut self.html {
                Some(block) => block.push_str(&html),
                None => self.take_html(&html),
            },
            Event::InlineHtml(html) => self.take_html(&html),
            Event::SoftBreak | Event::HardBreak => self.open.push('\n'),
            Event::Code(_) | Event::FootnoteReference(_) => self.open.push(OBJECT),
            _ => {}
        }
    }

    fn push(&mut self, text: &str) {
        if self.hidden == 0 && self.elements.is_empty() {
            self.open.push_str(text);
        }
    }

    fn flush(&mut self) {
        let block = std::mem::take(&mut self.open);
        if !block.trim().is_empty() {
            self.done.push(block);
        }
    }

    /// Ends a Markdown block. An element that stands within a line does not reach beyond it, closed or not.
    fn close(&mut self) {
        self.flush();
        self.elements.retain(|name| !WITHIN_A_LINE.contains(name));
    }

    /// Takes up the text of a piece of HTML, without comments and tags.
    fn take_html(&mut self, html: &str) {
        let mut rest = html;
        while let Some(start) = rest.find('<') {
            let (text, tail) = rest.split_at(start);
            self.push(text);
            rest = if let Some(comment) = tail.strip_prefix("<!--") {
                comment.split_once("-->").map_or("", |(_, after)| after)
            } else if let Some((closing, name, after)) = tag(tail) {
                self.element(closing, &name);
                after
            } else {
                self.push("<");
                tail.strip_prefix('<').unwrap_or_default()
            };
        }
        self.push(rest);
    }

    fn element(&mut self, closing: bool, name: &str) {
        if self.hidden > 0 {
            return;
        }
        if name == "br" {
            self.open.push('\n');
        } else if !WITHIN_A_LINE.contains(&name) {
            self.flush();
        }
        let Some(name) = HIDING.iter().find(|hiding| **hiding == name) else { return };
        if closing {
            if let Some(at) = self.elements.iter().rposition(|open| open == name) {
                self.elements.truncate(at);
            }
        } else {
            // What is hidden leaves a trace, so that the words on its two sides do not join.
            self.open.push(OBJECT);
            // Deeper than this nothing more is hidden than already is.
            if self.elements.len() < 64 {
                self.elements.push(name);
            }
        }
    }
}

/// The tag at the start of `html`: whether it closes, its name in lower case, and what follows it. What has no end
/// within [`MAX_TAG_BYTES`] is taken for text, so that the time stays in proportion to the length.
fn tag(html: &str) -> Option<(bool, String, &str)> {
    let inside = html.strip_prefix('<')?;
    let (closing, inside) = inside.strip_prefix('/').map_or((false, inside), |inside| (true, inside));
    if !inside.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let end = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(inside.len());
    let (name, attributes) = inside.split_at(end);
    let mut quote = None;
    for (at, c) in attributes.char_indices().take_while(|(at, _)| *at < MAX_TAG_BYTES) {
        match (quote, c) {
            (None, '>') => return Some((closing, name.to_ascii_lowercase(), attributes.get(at + 1..)?)),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    None
}

/// Whether a phrase in lower case stands in a text, set off on both sides, ignoring case. Offsets are those of the
/// text in lower case throughout, since the change of case can change lengths.
fn holds_phrase(text: &str, phrase: &str) -> bool {
    let text = text.to_lowercase();
    text.match_indices(phrase).any(|(start, found)| {
        let before = text.get(..start).and_then(|t| t.chars().next_back());
        let after = text.get(start + found.len()..).and_then(|t| t.chars().next());
        before.is_none_or(char::is_whitespace)
            && after.is_none_or(|c| c.is_whitespace() || matches!(c, '.' | ',' | '!' | '?' | ';' | ':'))
    })
}

fn folded_lower(text: &str) -> String {
    fold_space(text).to_lowercase()
}

fn fold_space(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
