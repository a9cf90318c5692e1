//! Reads the file that holds the event's payload: bounded, and with an error for each way in which it can be wrong.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use serde_json::Value;
use serde_json::error::Category;

use crate::core::decision::{Reason, Stop};

/// The largest payload that GitHub delivers, in bytes.
/// <https://docs.github.com/en/webhooks/webhook-events-and-payloads#payload-cap>
pub const MAX_PAYLOAD: u64 = 25 * 1024 * 1024;

/// The payload in a file, which is always an object. Every error is a `bad-payload` that names the file and says what
/// to do.
pub fn read(path: &Path) -> Result<Value, Stop> {
    let bad = |what: &str| Stop::new(Reason::BadPayload, format!("the event payload {} {what}", path.display()));
    let bytes = match read_bounded(path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => {
            return Err(bad("is larger than 25 MiB, more than GitHub ever delivers; give the file of one event"));
        }
        Err(e) => {
            return Err(match e.kind() {
                ErrorKind::NotFound => bad("does not exist; give the path of a file that does"),
                ErrorKind::IsADirectory => bad("is a directory; give the path of the file in it"),
                ErrorKind::PermissionDenied => bad("may not be read; give the user of this step access to it"),
                _ => bad(&format!("cannot be read ({e}); make it readable and try again")),
            });
        }
    };
    if bytes.is_empty() {
        return Err(bad("is empty; give the file that the runner wrote, or write it again"));
    }
    if [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"].iter().any(|mark| bytes.starts_with(mark)) {
        return Err(bad("starts with a byte order mark; save it as UTF-8 without one"));
    }
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return Err(bad("is not UTF-8; save it as UTF-8"));
    };
    if text.trim().is_empty() {
        return Err(bad("is empty; give the file that the runner wrote, or write it again"));
    }
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(bad("is no JSON object; give the payload of one event")),
        Err(e) if e.classify() == Category::Eof => {
            Err(bad(&format!("ends in the middle of its JSON, on line {}; write the whole of it", e.line())))
        }
        Err(e) if e.to_string().starts_with("recursion limit exceeded") => {
            Err(bad("is nested more deeply than any event; give the payload of one event"))
        }
        Err(e) => {
            Err(bad(&format!("is not JSON (line {}, column {}); give the payload of one event", e.line(), e.column())))
        }
    }
}

/// The bytes of a file; `None` if there are more than a payload can have, of which no more are read.
fn read_bounded(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let file = File::open(path)?;
    let said = file.metadata()?;
    if said.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if said.is_file() && said.len() > MAX_PAYLOAD {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    // A device or pipe tells no length, and a file can grow.
    file.take(MAX_PAYLOAD + 1).read_to_end(&mut bytes)?;
    Ok(u64::try_from(bytes.len()).is_ok_and(|len| len <= MAX_PAYLOAD).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a file with these bytes, without the part that names it.
    fn said(bytes: &[u8]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("event.json");
        std::fs::write(&path, bytes).unwrap();
        let stop = read(&path).unwrap_err();
        assert_eq!(stop.reason, Reason::BadPayload);
        stop.message.strip_prefix(&format!("the event payload {} ", path.display())).unwrap().to_owned()
    }

    #[test]
    fn reads_an_object() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("event.json");
        std::fs::write(&path, "\n {\"action\": \"opened\", \"n\": [1, null]}\n").unwrap();
        assert_eq!(read(&path).unwrap(), serde_json::json!({ "action": "opened", "n": [1, null] }));
    }

    #[test]
    fn each_bad_file_has_one_clear_error() {
        let deep = ["{\"a\":".repeat(100_000), "}".repeat(100_000)].concat();
        let deep_list = "[".repeat(1_000_000);
        let cases: &[(&[u8], &str)] = &[
            (b"", "is empty; give the file that the runner wrote, or write it again"),
            (b" \n\t", "is empty; give the file that the runner wrote, or write it again"),
            (b"{\"action\":\n \"ope", "ends in the middle of its JSON, on line 2; write the whole of it"),
            (b"{", "ends in the middle of its JSON, on line 1; write the whole of it"),
            (b"action: opened", "is not JSON (line 1, column 1); give the payload of one event"),
            (b"{\"a\": 1} {\"b\": 2}", "is not JSON (line 1, column 10); give the payload of one event"),
            (b"{\"a\": NaN}", "is not JSON (line 1, column 7); give the payload of one event"),
            (b"[]", "is no JSON object; give the payload of one event"),
            (b"\"ghp_secret\"", "is no JSON object; give the payload of one event"),
            (b"null", "is no JSON object; give the payload of one event"),
            (b"{\"a\": \"\xff\"}", "is not UTF-8; save it as UTF-8"),
            (b"\xef\xbb\xbf{}", "starts with a byte order mark; save it as UTF-8 without one"),
            (b"\xff\xfe{\0}\0", "starts with a byte order mark; save it as UTF-8 without one"),
            (deep.as_bytes(), "is nested more deeply than any event; give the payload of one event"),
            (deep_list.as_bytes(), "is nested more deeply than any event; give the payload of one event"),
        ];
        for (bytes, want) in cases {
            assert_eq!(said(bytes), *want, "{}", String::from_utf8_lossy(bytes.get(..30).unwrap_or(bytes)));
        }
    }

    #[test]
    fn a_file_above_the_cap_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("event.json");
        // Sparse: 30 MB on paper, nothing on the disk.
        File::create(&path).unwrap().set_len(30_000_000).unwrap();
        let stop = read(&path).unwrap_err();
        assert!(
            stop.message.ends_with("is larger than 25 MiB, more than GitHub ever delivers; give the file of one event")
        );
        // What tells no length is cut off at the cap.
        #[cfg(target_os = "linux")]
        assert!(read(Path::new("/dev/zero")).unwrap_err().message.contains("is larger than 25 MiB"));
    }

    #[test]
    fn names_what_is_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("none.json");
        assert_eq!(
            read(&missing).unwrap_err().message,
            format!("the event payload {} does not exist; give the path of a file that does", missing.display())
        );
        assert_eq!(
            read(dir.path()).unwrap_err().message,
            format!("the event payload {} is a directory; give the path of the file in it", dir.path().display())
        );
    }
}
