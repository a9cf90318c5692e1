//! The `label` ledger: claim N of a key is the repository label `rg:TASK:DIGEST:N`, its record the description.
//!
//! The server creates a label only if there is none of that name, which is what arbitrates.

use chrono::{DateTime, Utc};

use crate::core::claim::{
    Claim, ClaimRead, LABEL_PREFIX, LedgerKind, MAX_CLAIM_NUMBER, Record, Thing, label_name, parse_label_name,
};
use crate::core::facts::{Claims, Window, WindowClaim};
use crate::core::key::Key;
use crate::ports::{Created, Deletion, GitHub, Label, Ledger, Listing, PortError, Probe, Probed, RepoName, WindowPage};

/// The colour of a claim's label: a quiet grey.
const COLOR: &str = "ededed";

/// Claims as repository labels.
#[derive(Debug)]
pub struct LabelLedger<'a, G> {
    github: &'a G,
}

impl<'a, G: GitHub> LabelLedger<'a, G> {
    /// The ledger over a GitHub.
    pub const fn new(github: &'a G) -> Self {
        Self { github }
    }
}

/// A label as a claim: one whose description is no record is there all the same.
fn read(number: u32, label: &Label) -> ClaimRead {
    let thing = Thing(label.node_id.clone().unwrap_or_default());
    match Record::decode(&label.description) {
        Ok(record) => ClaimRead::Readable(Claim { number, thing, record }),
        Err(bad) => ClaimRead::Unreadable { number, thing, why: bad.to_string() },
    }
}

impl<G: GitHub> Ledger for LabelLedger<'_, G> {
    fn kind(&self) -> LedgerKind {
        LedgerKind::Label
    }

    fn permission(&self) -> &'static str {
        "issues: write"
    }

    fn probe(&self, key: &Key) -> Probe {
        let digest = key.digest();
        Probe::Labels((1..=MAX_CLAIM_NUMBER).map(|n| label_name(key.task(), &digest, n)).collect())
    }

    fn probe_one(&self, key: &Key, number: u32) -> Probe {
        Probe::Labels(vec![label_name(key.task(), &key.digest(), number)])
    }

    fn claims(&self, key: &Key, probed: &Probed) -> Result<Claims, String> {
        let Probed::Labels(labels) = probed else { return Ok(Claims::new()) };
        let digest = key.digest();
        Ok(labels
            .values()
            .filter_map(|label| {
                let (task, of, number) = parse_label_name(&label.name.to_ascii_lowercase())?;
                (task == *key.task() && of == digest).then(|| (number, read(number, label)))
            })
            .collect())
    }

    fn listing(&self) -> Option<Listing> {
        Some(Listing::Labels)
    }

    fn add_to_window(&self, window: &mut Window, page: &WindowPage) {
        let WindowPage::Labels(page) = page else { return };
        for label in &page.labels {
            if !label.name.starts_with(LABEL_PREFIX) {
                continue;
            }
            match parse_label_name(&label.name).map(|(task, digest, n)| (task, digest, read(n, label))) {
                Some((task, digest, ClaimRead::Readable(claim))) => {
                    let entry = WindowClaim { task: task.to_string(), digest: digest.to_string(), claim };
                    if !window.claims.contains(&entry) {
                        window.claims.push(entry);
                    }
                }
                Some((_, _, ClaimRead::Unreadable { .. })) => window.unreadable.push(label.name.clone()),
                // A person's own label that happens to start alike is no claim.
                None => {}
            }
        }
        // Labels come newest first, so the last of a page tells how far back the list is whole.
        // A page that does not say how old it is proves nothing complete; `None` would say that everything is.
        let reached = page.labels.last().and_then(|l| l.created_at).or(window.complete_since);
        window.complete_since = page.next.as_ref().map(|_| reached.unwrap_or(DateTime::<Utc>::MAX_UTC));
    }

    async fn create(
        &self,
        repo: &RepoName,
        key: &Key,
        number: u32,
        record: &Record,
        _after: Option<&Claim>,
    ) -> Result<Created, PortError> {
        let label = Label {
            name: label_name(key.task(), &key.digest(), number),
            description: record.encode(),
            node_id: None,
            created_at: None,
        };
        match self.github.create_label(repo, &label, COLOR).await {
            Ok(made) => Ok(Created::Made(Thing(made.node_id.unwrap_or_default()))),
            Err(PortError::Exists { .. }) => Ok(Created::Exists),
            Err(error) => Err(error),
        }
    }

    async fn read(&self, repo: &RepoName, key: &Key, number: u32) -> Result<Option<ClaimRead>, PortError> {
        let name = label_name(key.task(), &key.digest(), number);
        Ok(self.github.label(repo, &name).await?.map(|label| read(number, &label)))
    }

    async fn rewrite(&self, repo: &RepoName, key: &Key, claim: &Claim, record: &Record) -> Result<(), PortError> {
        let name = label_name(key.task(), &key.digest(), claim.number);
        self.github.describe_label(repo, &name, &record.encode()).await
    }

    fn sweep_listing(&self) -> Option<Listing> {
        Some(Listing::OldestLabels)
    }

    async fn delete(&self, _repo: &RepoName, _key: &Key, claims: &[ClaimRead]) -> Result<(), PortError> {
        // A label whose node id is not known cannot be told from one that was made again.
        let ids = claims.iter().map(|claim| claim.thing().0.clone()).filter(|id| !id.is_empty()).collect();
        self.github.delete(&Deletion::Labels(ids)).await
    }
}
