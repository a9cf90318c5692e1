//! What the embedded GitHub refuses, in types. GitHub's own words for it are here and nowhere else.

use chrono::{DateTime, Utc};

/// GitHub's word for what is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Another thing has this value already.
    AlreadyExists,
    /// It names a thing that does not exist.
    Missing,
    /// It has to be given.
    MissingField,
    /// Its form is wrong.
    Invalid,
    /// See the message.
    Custom,
    /// It is understood and refused; see the message.
    Unprocessable,
}

impl Code {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AlreadyExists => "already_exists",
            Self::Missing => "missing",
            Self::MissingField => "missing_field",
            Self::Invalid => "invalid",
            Self::Custom => "custom",
            Self::Unprocessable => "unprocessable",
        }
    }
}

/// One entry of `errors` in a 422.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The kind of thing, such as `Label`.
    pub resource: &'static str,
    /// What is wrong.
    pub code: Code,
    /// The field.
    pub field: &'static str,
    /// A sentence, where GitHub gives one.
    pub message: Option<String>,
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiError {
    /// 400: the body is no JSON.
    BadJson,
    /// 401: the token is unknown.
    BadCredentials,
    /// 401: there is no token, and the endpoint needs one.
    NoCredentials,
    /// 403: the request does not say which program makes it.
    NoUserAgent,
    /// 403: the token has not the permission. The flag tells a personal access token.
    NotAccessible {
        /// Whether the token is a personal access token.
        personal: bool,
    },
    /// 403: the conversation is locked.
    Locked,
    /// 404: there is no such thing, or the token may not know of it.
    NotFound,
    /// 404: the item does not carry the label.
    NoSuchLabel,
    /// 409: the repository has no commit.
    EmptyRepository,
    /// 410: the issue was deleted.
    Deleted,
    /// 422 with fields.
    Invalid(Vec<FieldError>),
    /// 422 without fields.
    Unprocessable(String),
    /// A rate limit: 403 or 429.
    RateLimited {
        /// The HTTP status.
        status: u16,
        /// The header `retry-after`, in seconds.
        retry_after: Option<u64>,
        /// When the primary limit is full again, if it is that one which is used up.
        reset: Option<DateTime<Utc>>,
    },
    /// A fault of the server: 5xx.
    Server(u16),
}

impl ApiError {
    /// The creation of a thing that exists.
    pub fn already_exists(resource: &'static str, field: &'static str) -> Self {
        Self::Invalid(vec![FieldError { resource, code: Code::AlreadyExists, field, message: None }])
    }

    /// A field with a code and no sentence.
    pub fn field(resource: &'static str, code: Code, field: &'static str) -> Self {
        Self::Invalid(vec![FieldError { resource, code, field, message: None }])
    }

    /// A field with a sentence.
    pub fn told(resource: &'static str, code: Code, field: &'static str, message: impl Into<String>) -> Self {
        Self::Invalid(vec![FieldError { resource, code, field, message: Some(message.into()) }])
    }

    /// Whether this says that the thing to be created exists.
    pub fn is_already_exists(&self) -> bool {
        match self {
            Self::Invalid(fields) => fields.iter().any(|f| f.code == Code::AlreadyExists),
            Self::Unprocessable(message) => message == super::git::REF_EXISTS,
            _ => false,
        }
    }

    /// Whether the token has not the permission.
    pub const fn is_forbidden(&self) -> bool {
        matches!(self, Self::NotAccessible { .. })
    }

    /// The HTTP status.
    pub const fn status(&self) -> u16 {
        match self {
            Self::BadJson => 400,
            Self::BadCredentials | Self::NoCredentials => 401,
            Self::NoUserAgent | Self::NotAccessible { .. } | Self::Locked => 403,
            Self::NotFound | Self::NoSuchLabel => 404,
            Self::EmptyRepository => 409,
            Self::Deleted => 410,
            Self::Invalid(_) | Self::Unprocessable(_) => 422,
            Self::RateLimited { status, .. } | Self::Server(status) => *status,
        }
    }

    /// GitHub's `message`.
    pub fn message(&self) -> String {
        match self {
            Self::BadJson => "Problems parsing JSON",
            Self::BadCredentials => "Bad credentials",
            Self::NoCredentials => "Requires authentication",
            Self::NoUserAgent => "Request forbidden by administrative rules: a User-Agent header is required",
            Self::NotAccessible { personal: false } => "Resource not accessible by integration",
            Self::NotAccessible { personal: true } => "Resource not accessible by personal access token",
            Self::Locked => "Unable to create comment because issue is locked.",
            Self::NotFound => "Not Found",
            Self::NoSuchLabel => "Label does not exist",
            Self::EmptyRepository => "Git Repository is empty.",
            Self::Deleted => "This issue was deleted",
            Self::Invalid(_) => "Validation Failed",
            Self::Unprocessable(message) => message,
            Self::RateLimited { reset: Some(_), .. } => "API rate limit exceeded for installation.",
            Self::RateLimited { reset: None, .. } => {
                "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
            }
            Self::Server(502) => "Server Error",
            Self::Server(503) => "Service unavailable",
            Self::Server(_) => "Internal Server Error",
        }
        .to_owned()
    }

    /// The message and what `errors` adds to it.
    pub fn words(&self) -> String {
        let more = |f: &FieldError| {
            f.message.clone().unwrap_or_else(|| format!("{} {} {}", f.resource, f.field, f.code.as_str()))
        };
        let more: Vec<_> = self.fields().iter().map(more).collect();
        if more.is_empty() { self.message() } else { format!("{}: {}", self.message(), more.join(", ")) }
    }

    /// The entries of `errors`.
    pub fn fields(&self) -> &[FieldError] {
        match self {
            Self::Invalid(fields) => fields,
            _ => &[],
        }
    }
}
