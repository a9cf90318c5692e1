//! The token, in a type that cannot be printed.

use std::fmt;

/// What stands in place of the token wherever text could carry it.
const HIDDEN: &str = "***";

/// A GitHub token. Neither `Debug` nor `Display` show it.
#[derive(Clone)]
pub struct Token(String);

/// Why a text cannot be a token. Does not hold the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    /// Nothing but white space.
    #[error("the token is empty")]
    Empty,
    /// Characters that no request header can carry.
    #[error("the token holds characters that no token has, such as a line break inside")]
    Characters,
}

impl Token {
    /// A token, without the white space around it.
    pub fn new(text: &str) -> Result<Self, BadToken> {
        let text = text.trim();
        if text.is_empty() {
            return Err(BadToken::Empty);
        }
        if !text.chars().all(|c| c.is_ascii_graphic()) {
            return Err(BadToken::Characters);
        }
        Ok(Self(text.to_owned()))
    }

    /// The token itself, for the request header and for the runner's mask alone.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// A text in which the token, where it occurs, is replaced.
    pub fn hide_in(&self, text: &str) -> String {
        text.replace(&self.0, HIDDEN)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_never_shown() {
        let token = Token::new(" ghp_secret\n").unwrap();
        assert_eq!(token.expose(), "ghp_secret");
        assert_eq!(format!("{token} {token:?} {:?}", Some(&token)), "*** *** Some(***)");
        assert_eq!(token.hide_in("Bearer ghp_secret, ghp_secret"), "Bearer ***, ***");
    }

    #[test]
    fn refuses_what_no_header_can_carry() {
        assert_eq!(Token::new(" \n").unwrap_err(), BadToken::Empty);
        for text in ["a\nb", "a b", "é", "a\u{7f}"] {
            assert_eq!(Token::new(text).unwrap_err(), BadToken::Characters, "{text:?}");
        }
    }
}
