//! Which GitHub is asked: github.com, a tenant of it, or an Enterprise Server.

use reqwest::Url;

/// The three addresses of one GitHub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    api: Url,
    graphql: Url,
    server: Url,
}

/// Why an address cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// It is no address.
    #[error("{variable} is not an address of the form https://HOST or https://HOST/PATH: `{value}`")]
    NotAnAddress {
        /// The variable that holds it.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// The token would travel in clear.
    #[error("{variable} must start with https://, since the token would travel in clear: `{value}`")]
    InClear {
        /// The variable that holds it.
        variable: &'static str,
        /// Its value.
        value: String,
    },
}

/// The variable that names the REST address.
const API: &str = "GITHUB_API_URL";
/// The variable that names the GraphQL address.
const GRAPHQL: &str = "GITHUB_GRAPHQL_URL";
/// The variable that names the address of the pages.
const SERVER: &str = "GITHUB_SERVER_URL";

impl Hosts {
    /// From the values of `GITHUB_API_URL`, `GITHUB_GRAPHQL_URL` and `GITHUB_SERVER_URL`. Those that are missing follow
    /// from those that are there; with none, it is github.com. `http://` is for loopback hosts alone.
    pub fn new(api: Option<&str>, graphql: Option<&str>, server: Option<&str>) -> Result<Self, HostError> {
        let given_server = server.map(|value| parse(SERVER, value)).transpose()?;
        let api = match (api, &given_server) {
            (Some(value), _) => parse(API, value)?,
            (None, Some(server)) => parse(API, &api_of(server))?,
            (None, None) => parse(API, "https://api.github.com")?,
        };
        let graphql = match graphql {
            Some(value) => parse(GRAPHQL, value)?,
            None => parse(GRAPHQL, &graphql_of(&api))?,
        };
        let server = match given_server {
            Some(server) => server,
            None => parse(SERVER, &server_of(&api))?,
        };
        Ok(Self { api, graphql, server })
    }

    /// The address that REST paths are added to.
    pub const fn api(&self) -> &Url {
        &self.api
    }

    /// The address that GraphQL queries go to.
    pub const fn graphql(&self) -> &Url {
        &self.graphql
    }

    /// The host of the pages, lower case, with its port where that is not the usual one: the first part of every key.
    pub fn name(&self) -> String {
        let host = self.server.host_str().unwrap_or_default();
        match self.server.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// The address of the pages, without a slash at the end.
    pub fn server(&self) -> &str {
        self.server.as_str().trim_end_matches('/')
    }

    /// Whether requests stay on this machine. A proxy is no use for those, and would be handed the token in clear.
    pub(super) fn is_local(&self) -> bool {
        is_loopback(&self.api) && is_loopback(&self.graphql)
    }
}

/// An address that the token may be sent to.
fn parse(variable: &'static str, value: &str) -> Result<Url, HostError> {
    let shown = || value.chars().filter(|c| !c.is_control()).take(100).collect::<String>();
    let bad = || HostError::NotAnAddress { variable, value: shown() };
    let address = Url::parse(value.trim()).map_err(|_| bad())?;
    let plain = address.username().is_empty()
        && address.password().is_none()
        && address.query().is_none()
        && address.fragment().is_none();
    // What a password is for cannot be told from here, so an address with one is not shown.
    if !plain && (address.password().is_some() || !address.username().is_empty()) {
        return Err(HostError::NotAnAddress { variable, value: "***".to_owned() });
    }
    if !plain || address.host_str().is_none_or(str::is_empty) {
        return Err(bad());
    }
    match address.scheme() {
        "https" => Ok(address),
        "http" if is_loopback(&address) => Ok(address),
        "http" => Err(HostError::InClear { variable, value: shown() }),
        _ => Err(bad()),
    }
}

/// Whether the host is this machine: `localhost` or a loopback address.
fn is_loopback(address: &Url) -> bool {
    let host = address.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Scheme, host and port, with another host.
fn origin_with(address: &Url, host: &str) -> String {
    let port = address.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{host}{port}", address.scheme())
}

/// The REST address that belongs to an address of pages: `api.` before the host on github.com and its tenants, the
/// path `/api/v3` elsewhere.
fn api_of(server: &Url) -> String {
    let host = server.host_str().unwrap_or_default();
    if is_hosted_by_github(host) {
        origin_with(server, &format!("api.{host}"))
    } else {
        format!("{}/api/v3", origin_with(server, host))
    }
}

/// The address of pages that belongs to a REST address.
fn server_of(api: &Url) -> String {
    let host = api.host_str().unwrap_or_default();
    let bare = host.strip_prefix("api.").filter(|rest| is_hosted_by_github(rest));
    origin_with(api, bare.unwrap_or(host))
}

/// The GraphQL address that belongs to a REST address: `/graphql` beside it, or `/api/graphql` for `/api/v3`.
fn graphql_of(api: &Url) -> String {
    let base = api.as_str().trim_end_matches('/');
    format!("{}/graphql", base.strip_suffix("/v3").unwrap_or(base))
}

/// github.com, or a tenant with data residency under ghe.com.
fn is_hosted_by_github(host: &str) -> bool {
    host == "github.com" || host.ends_with(".ghe.com")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// api, graphql, server given; api, graphql, server and name that follow.
    type Case<'a> = ([Option<&'a str>; 3], [&'a str; 4]);

    #[test]
    fn what_is_missing_follows_from_what_is_there() {
        let cases: &[Case<'_>] = &[
            (
                [None, None, None],
                ["https://api.github.com/", "https://api.github.com/graphql", "https://github.com", "github.com"],
            ),
            (
                [Some("https://GHE.corp/api/v3"), None, None],
                ["https://ghe.corp/api/v3", "https://ghe.corp/api/graphql", "https://ghe.corp", "ghe.corp"],
            ),
            (
                [Some("https://ghe.corp:8443/api/v3/"), None, None],
                [
                    "https://ghe.corp:8443/api/v3/",
                    "https://ghe.corp:8443/api/graphql",
                    "https://ghe.corp:8443",
                    "ghe.corp:8443",
                ],
            ),
            (
                [None, None, Some("https://ghe.corp")],
                ["https://ghe.corp/api/v3", "https://ghe.corp/api/graphql", "https://ghe.corp", "ghe.corp"],
            ),
            (
                [None, None, Some("https://octo.ghe.com")],
                [
                    "https://api.octo.ghe.com/",
                    "https://api.octo.ghe.com/graphql",
                    "https://octo.ghe.com",
                    "octo.ghe.com",
                ],
            ),
            (
                [Some("https://api.octo.ghe.com"), None, None],
                [
                    "https://api.octo.ghe.com/",
                    "https://api.octo.ghe.com/graphql",
                    "https://octo.ghe.com",
                    "octo.ghe.com",
                ],
            ),
            (
                [Some("http://127.0.0.1:4000"), Some("http://[::1]:4001/graphql"), Some("https://github.com")],
                ["http://127.0.0.1:4000/", "http://[::1]:4001/graphql", "https://github.com", "github.com"],
            ),
            (
                [Some("http://localhost:4000"), None, None],
                ["http://localhost:4000/", "http://localhost:4000/graphql", "http://localhost:4000", "localhost:4000"],
            ),
        ];
        for ([api, graphql, server], want) in cases {
            let hosts = Hosts::new(*api, *graphql, *server).unwrap();
            let got = [hosts.api().as_str(), hosts.graphql().as_str(), hosts.server(), &hosts.name()];
            assert_eq!(got, *want, "{api:?} {graphql:?} {server:?}");
        }
    }

    #[test]
    fn the_token_never_travels_in_clear() {
        for value in
            ["http://api.github.com", "http://10.0.0.1", "http://localhost.evil.example", "http://127.0.0.1.nip.io"]
        {
            for (i, name) in [API, GRAPHQL, SERVER].into_iter().enumerate() {
                let mut given = [None; 3];
                given[i] = Some(value);
                let error = Hosts::new(given[0], given[1], given[2]).unwrap_err();
                assert_eq!(error, HostError::InClear { variable: name, value: value.to_owned() });
            }
        }
    }

    #[test]
    fn refuses_what_is_no_address() {
        for value in
            ["", "api.github.com", "ftp://github.com", "https://", "https://h/?a=b", "https://h/#f", "file:///x"]
        {
            let error = Hosts::new(Some(value), None, None).unwrap_err();
            assert!(matches!(error, HostError::NotAnAddress { variable: API, .. }), "{value}: {error}");
        }
        let error = Hosts::new(Some("https://user:ghp_secret@github.com"), None, None).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("ghp_secret"));
    }
}
