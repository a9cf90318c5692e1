//! Durations and amounts of money, as people write them in policies.

use chrono::TimeDelta;

/// The longest span that can be meant anywhere.
pub const MAX_SPAN: TimeDelta = TimeDelta::days(365);

/// The largest amount of money that can be meant anywhere, in cents: a million dollars.
pub const MAX_CENTS: u64 = 100_000_000;

/// Reads a duration: a whole number and one of the units `s`, `m`, `h` and `d`.
///
/// # Errors
///
/// The rest of a sentence that starts with what was read, such as `has no unit: write 30s, 30m, …`.
pub fn duration(text: &str) -> Result<TimeDelta, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = text.get(digits.len()..).unwrap_or_default();
    let number = || digits.parse::<i64>().ok().filter(|n| *n >= 0 && !digits.starts_with(['+', '-']));
    if unit.is_empty() && number().is_some() {
        return Err(format!("has no unit: write `{digits}s`, `{digits}m`, `{digits}h` or `{digits}d`"));
    }
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err("is no duration: write a whole number and a unit, such as `30s`, `30m`, `6h` or `2d`".into()),
    };
    let Some(number) = number() else {
        return Err("is no duration: write a whole number and a unit, such as `30s`, `30m`, `6h` or `2d`".into());
    };
    number
        .checked_mul(seconds)
        .and_then(TimeDelta::try_seconds)
        .filter(|span| *span <= MAX_SPAN)
        .ok_or_else(|| format!("is longer than {} days", MAX_SPAN.num_days()))
}

/// Reads an amount of US dollars, in cents: digits, and after a point one or two more.
///
/// # Errors
///
/// The rest of a sentence that starts with what was read.
pub fn cents(text: &str) -> Result<u64, String> {
    if text.starts_with('-') {
        return Err("is less than nothing".into());
    }
    if text.starts_with('$') {
        return Err("has a currency sign: write the number alone, such as `2.50`".into());
    }
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_digit());
    if !is_digits(whole) || !is_digits(part) {
        return Err("is no amount of US dollars: write it like `5` or `2.50`".into());
    }
    let part: u64 = match part.len() {
        1 => part.parse::<u64>().map(|tens| tens.saturating_mul(10)),
        2 => part.parse(),
        _ => return Err("is finer than a cent: write at most two digits after the point".into()),
    }
    .unwrap_or(0);
    whole
        .parse::<u64>()
        .ok()
        .and_then(|dollars| dollars.checked_mul(100)?.checked_add(part))
        .filter(|cents| *cents <= MAX_CENTS)
        .ok_or_else(|| format!("is more than {} US dollars", MAX_CENTS / 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_whole_number_and_a_unit() {
        for (text, seconds) in [("30s", 30), ("30m", 1800), ("6h", 21_600), ("2d", 172_800), ("0s", 0)] {
            assert_eq!(duration(text), Ok(TimeDelta::seconds(seconds)), "{text}");
        }
        for (text, part) in [
            ("30", "`30m`"),
            ("30 m", "is no duration"),
            ("m", "is no duration"),
            ("", "is no duration"),
            ("-3h", "is no duration"),
            ("+3h", "is no duration"),
            ("1.5h", "is no duration"),
            ("2w", "is no duration"),
            ("366d", "longer than 365 days"),
            ("9223372036854775807d", "longer than 365 days"),
            ("99999999999999999999s", "is no duration"),
        ] {
            let error = duration(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn money_is_counted_in_whole_cents() {
        for (text, expected) in
            [("5", 500), ("2.50", 250), ("2.5", 250), ("0.07", 7), ("0.29", 29), ("1000000", MAX_CENTS)]
        {
            assert_eq!(cents(text), Ok(expected), "{text}");
        }
        for (text, part) in [
            ("-1", "less than nothing"),
            ("$5", "currency sign"),
            ("0.001", "finer than a cent"),
            ("1e3", "no amount"),
            (".5", "no amount"),
            ("5.", "no amount"),
            ("1_000", "no amount"),
            ("1000000.01", "more than 1000000"),
            ("99999999999999999999", "more than 1000000"),
        ] {
            let error = cents(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
