//! The claims that stand on the embedded GitHub, whichever ledger keeps them: for those who look at what happened rather
//! than at what was answered.

use std::collections::BTreeMap;

use super::State;
use super::checks::CheckRow;
use crate::core::claim::{
    Record, label_name, parse_check_text, parse_commit_message, parse_label_name, parse_ref_name, ref_prefix,
};
use crate::core::key::Key;

impl State {
    /// The readable claims of a key, by number.
    pub fn claims_of(&self, full: &str, key: &Key) -> BTreeMap<u32, Record> {
        let digest = key.digest();
        let labels = self.labels(full).into_iter().filter_map(|label| {
            let (task, of, number) = parse_label_name(&label.name)?;
            let record = Record::decode(label.description.as_deref()?).ok()?;
            (task == *key.task() && of == digest).then_some((number, record))
        });
        let refs = self.refs(full, &ref_prefix(&digest)).into_iter().filter_map(|found| {
            let (_, number) = parse_ref_name(&found.name)?;
            Some((number, parse_commit_message(&found.message?).ok()?.1))
        });
        let mut claims: BTreeMap<u32, Record> = labels.chain(refs).collect();
        // Of the check runs that say a number, the one with the lowest id has it.
        let mut checks = self.checks(full);
        checks.sort_by_key(|row| std::cmp::Reverse(row.id));
        for check in checks.into_iter().map(CheckRow::seen).filter(|check| check.external_id == digest.as_str()) {
            if let Ok((number, Ok(record))) = parse_check_text(&check.text) {
                claims.insert(number, record);
            }
        }
        claims
    }

    /// Claim `number` of a key, if it stands and can be read.
    pub fn claim_of(&self, full: &str, key: &Key, number: u32) -> Option<Record> {
        let name = label_name(key.task(), &key.digest(), number);
        let of_label = self.label(full, &name).and_then(|label| Record::decode(label.description.as_deref()?).ok());
        of_label.or_else(|| self.claims_of(full, key).remove(&number))
    }

    /// The claim that a request to change something is about, by the last parts of its path.
    pub fn claim_at(&self, full: &str, path: &str) -> Option<Record> {
        if let Some((_, name)) = path.rsplit_once("/labels/") {
            parse_label_name(name)?;
            return Record::decode(self.label(full, name)?.description.as_deref()?).ok();
        }
        if let Some((_, id)) = path.rsplit_once("/check-runs/") {
            let id: u64 = id.parse().ok()?;
            let check = self.checks(full).into_iter().find(|row| row.id == id)?.seen();
            return parse_check_text(&check.text).ok()?.1.ok();
        }
        let (_, name) = path.split_once("/git/")?;
        parse_ref_name(name)?;
        let found = self.repo(full)?.git_ref(name)?;
        Some(parse_commit_message(&found.message?).ok()?.1)
    }
}
