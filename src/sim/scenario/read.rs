//! The scenario file: YAML to a checked [`Scenario`].

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDateTime, NaiveTime, TimeDelta, Utc};
use serde_json::Value;

use super::{
    Act, Agent, AgentEnd, AgentSays, Before, ClaimBefore, ClaimEnd, ClaimName, CommentBefore, Delivery, End, Expect,
    Expected, Inputs, IssueAct, ItemBefore, ItemEnd, PointsTo, Reference, RunBefore, Scenario, ScenarioError, Step,
    Workflow,
};
use crate::config::located::{Class, Document, Field, Kind, Node, did_you_mean, listed, shown};
use crate::config::{from_node, unknown, values};
use crate::core::claim::{Cause, LedgerChoice, MAX_CLAIM_NUMBER, Outcome};
use crate::core::decision::{OnError, Reason, Verdict};
use crate::core::facts::Permission;
use crate::core::key::Task;
use crate::core::trigger::is_repository_name;
use crate::sim::{Access, Scope};

type Result<T> = std::result::Result<T, ScenarioError>;

/// When a scenario starts that does not say: a Monday morning.
const START: &str = "2026-03-02 09:00";

/// The repository of a scenario that does not say.
const REPOSITORY: (&str, u64) = ("acme/app", 731_000);

/// The bots that every GitHub here knows.
const BOTS: [&str; 2] = ["claude[bot]", "github-actions[bot]"];

/// The events that are simulated, each with its actions.
const EVENTS: [(&str, &[&str]); 2] = [
    (
        "issues",
        &[
            "opened",
            "edited",
            "deleted",
            "closed",
            "reopened",
            "labeled",
            "unlabeled",
            "assigned",
            "unassigned",
            "locked",
            "unlocked",
        ],
    ),
    ("issue_comment", &["created", "edited", "deleted"]),
];

const PERMISSIONS: [(&str, Permission); 6] = [
    ("none", Permission::None),
    ("read", Permission::Read),
    ("triage", Permission::Read),
    ("write", Permission::Write),
    ("maintain", Permission::Write),
    ("admin", Permission::Admin),
];

const ENDS: [(&str, AgentEnd); 5] = [
    ("success", AgentEnd::Success),
    ("failure", AgentEnd::Failure),
    ("cancelled", AgentEnd::Cancelled),
    ("killed", AgentEnd::Killed),
    ("never", AgentEnd::Never),
];

/// The longest text that stands in one line: names, titles, reasons.
const LINE: usize = 300;

/// A mapping whose keys are known.
struct Keys<'d> {
    document: &'d Document<'d>,
    node: &'d Node,
    what: String,
    fields: Vec<Field<'d>>,
}

impl<'d> Keys<'d> {
    fn read(document: &'d Document<'d>, node: &'d Node, what: &str, names: &[&str]) -> Result<Self> {
        let fields = Field::all(document, node, what)?;
        match fields.iter().find(|f| !names.contains(&f.name)) {
            Some(field) => Err(unknown(field, what, names.iter().copied())),
            None => Ok(Self { document, node, what: what.to_owned(), fields }),
        }
    }

    fn of(document: &'d Document<'d>, field: &Field<'d>, names: &[&str]) -> Result<Self> {
        Self::read(document, field.value, &format!("`{}`", shown(field.name)), names)
    }

    fn get(&self, name: &str) -> Option<&Field<'d>> {
        self.fields.iter().find(|f| f.name == name && !f.value.is_null())
    }

    fn need(&self, name: &str) -> Result<&Field<'d>> {
        self.get(name).ok_or_else(|| self.document.error_at(self.node, format!("{} says no `{name}`", self.what)))
    }

    fn map<T>(&self, name: &str, read: impl FnOnce(&Field<'d>) -> Result<T>) -> Result<Option<T>> {
        self.get(name).map(read).transpose()
    }

    fn line(&self, name: &str) -> Result<Option<String>> {
        self.map(name, |f| f.text(LINE))
    }

    fn prose(&self, name: &str) -> Result<Option<String>> {
        self.map(name, prose)
    }

    fn flag(&self, name: &str) -> Result<bool> {
        Ok(self.map(name, Field::bool)?.unwrap_or(false))
    }
}

/// What has been read so far, against which the rest is checked.
struct Reader<'d> {
    document: &'d Document<'d>,
    start: DateTime<Utc>,
    logins: Vec<String>,
    items: BTreeSet<u64>,
    comments: BTreeSet<String>,
    steps: BTreeMap<String, usize>,
}

pub(super) fn scenario(text: &str, origin: &str) -> Result<Scenario> {
    let document = Document::parse(text, origin)?;
    let top = Keys::read(
        &document,
        &document.root,
        "the scenario",
        &[
            "about",
            "start",
            "repository",
            "people",
            "bots",
            "policy",
            "permissions",
            "agent",
            "workflows",
            "github",
            "timeline",
            "expect",
        ],
    )?;
    let start = match top.get("start") {
        Some(field) => full_time(field.value.text().unwrap_or_default())
            .ok_or_else(|| field.must_be("a time such as `2026-03-02 09:00`"))?,
        None => full_time(START).unwrap_or_default(),
    };
    let (repository, repository_id, private) = repository(&document, &top)?;
    let (people, bots) = (people(&top)?, bots(&top)?);
    let mut logins: Vec<String> = people.iter().map(|(login, _)| login.clone()).collect();
    logins.extend(bots.iter().cloned());
    logins.extend(BOTS.map(str::to_owned));
    let mut reader = Reader {
        document: &document,
        start,
        logins,
        items: BTreeSet::new(),
        comments: BTreeSet::new(),
        steps: BTreeMap::new(),
    };
    let policy = top.map("policy", |f| reader.policy(f))?.flatten();
    let agent = top.map("agent", |f| reader.agent(f))?.map_or_else(Agent::default, |says| Agent::default().with(&says));
    let permissions = top.map("permissions", |f| permissions(&document, f))?.unwrap_or_else(default_permissions);
    let workflows = reader.workflows(top.need("workflows")?, &agent)?;
    let before = top.map("github", |f| reader.before(f))?.unwrap_or_default();
    let timeline = reader.timeline(top.need("timeline")?)?;
    let expect = top.map("expect", |f| reader.end(f))?.unwrap_or_default();
    Ok(Scenario {
        origin: origin.to_owned(),
        about: top.line("about")?.unwrap_or_else(|| origin.to_owned()),
        start,
        repository,
        repository_id,
        private,
        people,
        bots,
        policy,
        permissions,
        workflows,
        before,
        timeline,
        expect,
    })
}

fn repository(document: &Document<'_>, top: &Keys<'_>) -> Result<(String, u64, bool)> {
    let Some(field) = top.get("repository") else { return Ok((REPOSITORY.0.to_owned(), REPOSITORY.1, false)) };
    let checked = |f: &Field<'_>| match f.text(LINE)? {
        name if is_repository_name(&name) => Ok(name),
        _ => Err(f.must_be("a repository's name such as `acme/app`")),
    };
    if field.value.text().is_some() {
        return Ok((checked(field)?, REPOSITORY.1, false));
    }
    let keys = Keys::of(document, field, &["name", "id", "private"])?;
    let name = keys.map("name", checked)?.unwrap_or_else(|| REPOSITORY.0.to_owned());
    Ok((name, keys.map("id", number)?.unwrap_or(REPOSITORY.1), keys.flag("private")?))
}

fn people(top: &Keys<'_>) -> Result<Vec<(String, Permission)>> {
    let Some(field) = top.get("people") else { return Ok(Vec::new()) };
    field.fields()?.iter().map(|person| Ok((person.name.to_owned(), person.word(&PERMISSIONS)?))).collect()
}

fn bots(top: &Keys<'_>) -> Result<Vec<String>> {
    let Some(field) = top.get("bots") else { return Ok(Vec::new()) };
    let bots = field.texts(LINE)?;
    match field.items()?.iter().find(|item| item.text().is_some_and(|t| !t.ends_with("[bot]"))) {
        Some(item) => {
            Err(field.wrong_at(item, format!("`{}` is no bot's login", shown(item.text().unwrap_or_default()))))
                .map_err(|e| e.with_hint("an App's login ends in `[bot]`: \"renovate[bot]\""))
        }
        None => Ok(bots),
    }
}

/// What `examples/workflows` grant.
fn default_permissions() -> Vec<(Scope, Access)> {
    vec![
        (Scope::Contents, Access::Read),
        (Scope::Actions, Access::Read),
        (Scope::PullRequests, Access::Read),
        (Scope::Issues, Access::Write),
    ]
}

fn permissions(document: &Document<'_>, field: &Field<'_>) -> Result<Vec<(Scope, Access)>> {
    let names: Vec<&str> = Scope::ALL.iter().map(|s| s.as_str()).collect();
    let keys = Keys::of(document, field, &names)?;
    let words = [("none", None), ("read", Some(Access::Read)), ("write", Some(Access::Write))];
    let mut granted = Vec::new();
    for scope in Scope::ALL {
        if let Some(access) = keys.map(scope.as_str(), |f| f.word(&words))?.flatten() {
            granted.push((scope, access));
        }
    }
    Ok(granted)
}

impl<'d> Reader<'d> {
    fn keys(&self, field: &Field<'d>, names: &[&str]) -> Result<Keys<'d>> {
        Keys::of(self.document, field, names)
    }

    /// A policy: a mapping must be a right one; a text is taken as it stands, mistakes included.
    fn policy(&self, field: &Field<'d>) -> Result<Option<String>> {
        match &field.value.kind {
            Kind::Scalar(_, text) if text == "none" => Ok(None),
            Kind::Scalar(..) => prose(field).map(Some),
            Kind::Map(_) => {
                from_node(self.document, field.value)?;
                serde_yaml::to_string(&json(field.value))
                    .map(Some)
                    .map_err(|_| field.wrong("this policy cannot be written as a file"))
            }
            Kind::List(_) => Err(field.must_be("a mapping, a text or `none`")),
        }
    }

    fn agent(&self, field: &Field<'d>) -> Result<AgentSays> {
        let keys = self.keys(field, &["takes", "comments", "costs", "ends", "expect"])?;
        let none = |f: &Field<'_>| f.value.text() == Some("none");
        let ends = keys.map("ends", |f| f.word(&ENDS))?;
        let comments = keys.map("comments", |f| if none(f) { Ok(None) } else { prose(f).map(Some) })?;
        Ok(AgentSays {
            takes: keys.map("takes", duration)?,
            comments: comments.or_else(|| ends.filter(|e| *e != AgentEnd::Success).map(|_| None)),
            costs: keys.map("costs", cents)?,
            ends,
            expect: keys.map("expect", |f| self.expected(f))?,
        })
    }

    fn workflows(&self, field: &Field<'d>, agent: &Agent) -> Result<Vec<Workflow>> {
        let mut workflows = Vec::new();
        for node in list(field)? {
            let names = ["name", "task", "on", "inputs", "agent"];
            let keys = Keys::read(self.document, node, "a workflow", &names)?;
            let task = task(keys.need("task")?)?;
            let own = keys.map("agent", |f| self.agent(f))?.unwrap_or_default();
            workflows.push(Workflow {
                name: keys.line("name")?.unwrap_or_else(|| task.to_string()),
                on: match keys.get("on") {
                    Some(on) => events(on)?,
                    None => EVENTS.iter().map(|(event, _)| ((*event).to_owned(), Vec::new())).collect(),
                },
                task,
                inputs: keys.map("inputs", |f| self.inputs(f))?.unwrap_or_default(),
                agent: agent.with(&own),
            });
        }
        if workflows.is_empty() {
            return Err(field.wrong_key("a scenario without a workflow has nothing to guard"));
        }
        Ok(workflows)
    }

    fn inputs(&self, field: &Field<'d>) -> Result<Inputs> {
        let keys = self.keys(field, &["ledger", "anyone", "paused", "on-error", "deadline"])?;
        let ons = [("stop", OnError::Stop), ("proceed", OnError::Proceed), ("skip", OnError::Skip)];
        let usual = Inputs::default();
        Ok(Inputs {
            ledger: keys.map("ledger", |f| f.word(&LedgerChoice::ALL))?,
            anyone: keys.flag("anyone")?,
            paused: keys.flag("paused")?,
            on_error: keys.map("on-error", |f| f.word(&ons))?.unwrap_or(usual.on_error),
            deadline: keys.map("deadline", duration)?.unwrap_or(usual.deadline),
        })
    }

    // --- what is there before -------------------------------------------------------------------------------------

    fn before(&mut self, field: &Field<'d>) -> Result<Before> {
        let keys = self.keys(field, &["issues", "pull-requests", "labels", "runs", "claims"])?;
        let mut before =
            Before { labels: keys.map("labels", |f| f.texts(LINE))?.unwrap_or_default(), ..Before::default() };
        for (name, pull_request) in [("issues", false), ("pull-requests", true)] {
            let Some(field) = keys.get(name) else { continue };
            for item in field.fields()? {
                before.items.push(self.item_before(&item, pull_request)?);
            }
        }
        if let Some(field) = keys.get("runs") {
            for run in field.fields()? {
                before.runs.push(self.run_before(&run)?);
            }
        }
        if let Some(field) = keys.get("claims") {
            for node in list(field)? {
                before.claims.push(self.claim_before(node)?);
            }
        }
        Ok(before)
    }

    fn item_before(&mut self, field: &Field<'d>, pull_request: bool) -> Result<ItemBefore> {
        let number = key_number(field)?;
        if !self.items.insert(number) {
            return Err(
                field.wrong_key(format!("{number} is there twice; issues and pull requests share their numbers"))
            );
        }
        let names = ["at", "by", "title", "body", "labels", "state", "draft", "locked", "comments"];
        let keys = self.keys(field, &names)?;
        let at = keys.map("at", |f| self.past(f))?.unwrap_or(self.start - TimeDelta::days(1));
        let states: &[(&str, (bool, bool))] =
            &[("open", (true, false)), ("closed", (false, false)), ("merged", (false, true))];
        let states = if pull_request { states } else { states.get(..2).unwrap_or(states) };
        let (open, merged) = keys.map("state", |f| f.word(states))?.unwrap_or((true, false));
        let mut comments = Vec::new();
        if let Some(field) = keys.get("comments") {
            for node in list(field)? {
                let keys = Keys::read(self.document, node, "a comment", &["id", "by", "at", "text"])?;
                comments.push(CommentBefore {
                    id: keys.map("id", |f| self.new_comment(f))?,
                    by: self.login(keys.need("by")?)?,
                    at: keys.map("at", |f| self.past(f))?.unwrap_or(at),
                    text: prose(keys.need("text")?)?,
                });
            }
        }
        Ok(ItemBefore {
            number,
            pull_request,
            at,
            author: self.login(keys.need("by")?)?,
            title: keys.prose("title")?.unwrap_or_default(),
            body: keys.prose("body")?.unwrap_or_default(),
            labels: keys.map("labels", |f| f.texts(LINE))?.unwrap_or_default(),
            open,
            draft: keys.flag("draft")?,
            merged,
            locked: keys.flag("locked")?,
            comments,
        })
    }

    fn run_before(&self, field: &Field<'d>) -> Result<RunBefore> {
        let id = key_number(field)?;
        let keys = self.keys(field, &["event", "by", "attempt", "at", "ended", "conclusion", "active"])?;
        let at = keys.map("at", |f| self.past(f))?.unwrap_or(self.start - TimeDelta::hours(1));
        let conclusion = keys.map("conclusion", |f| {
            f.word(&["success", "failure", "cancelled", "timed_out", "skipped"].map(|word| (word, word)))
        })?;
        let ended = keys.map("ended", |f| self.past(f))?;
        if ended.is_some() && conclusion.is_none() {
            return Err(field.wrong_key("a run that ended needs a `conclusion`, such as `success`"));
        }
        Ok(RunBefore {
            id,
            event: keys.line("event")?.unwrap_or_else(|| "issues".to_owned()),
            by: self.login(keys.need("by")?)?,
            attempt: keys.map("attempt", |f| f.count(1, 1000))?.unwrap_or(1),
            at,
            ended: conclusion.map(|c| (c.to_owned(), ended.unwrap_or(at))),
            active: keys.map("active", |f| self.past(f))?.unwrap_or(at),
        })
    }

    fn claim_before(&self, node: &'d Node) -> Result<ClaimBefore> {
        let names = [
            "task",
            "issue",
            "pull-request",
            "comment",
            "number",
            "run",
            "attempt",
            "cause",
            "opened",
            "outcome",
            "settled",
            "costs",
            "result",
        ];
        let keys = Keys::read(self.document, node, "a claim", &names)?;
        let opened = self.past(keys.need("opened")?)?;
        let outcome = keys.map("outcome", outcome)?;
        let settled = keys.map("settled", |f| self.past(f))?;
        if let (Some(field), None) = (keys.get("settled"), outcome) {
            return Err(field.wrong_key("a claim that is settled needs an `outcome`, such as `completed`"));
        }
        Ok(ClaimBefore {
            name: self.claim_name(&keys)?,
            run: number(keys.need("run")?)?,
            attempt: keys.map("attempt", |f| f.count(1, 1000))?.unwrap_or(1),
            cause: keys.map("cause", cause)?.unwrap_or(Cause::First),
            opened,
            settled: outcome.map(|o| (o, settled.unwrap_or(opened))),
            costs: keys.map("costs", cents)?,
            result: keys.map("result", |f| self.comment(f))?,
        })
    }

    fn claim_name(&self, keys: &Keys<'d>) -> Result<ClaimName> {
        Ok(ClaimName {
            task: task(keys.need("task")?)?,
            item: match keys.get("pull-request") {
                Some(field) => self.item(field)?,
                None => self.item(keys.need("issue")?)?,
            },
            comment: keys.map("comment", |f| self.comment(f))?,
            number: keys.map("number", |f| f.count(1, MAX_CLAIM_NUMBER))?.unwrap_or(1),
        })
    }

    /// A time up to the start: a full one, a clock time of the day of the start, or `-10m` before the start.
    fn past(&self, field: &Field<'_>) -> Result<DateTime<Utc>> {
        let text = field.value.text().unwrap_or_default();
        let at = match text.strip_prefix('-') {
            Some(ago) => values::duration(ago).ok().map(|ago| self.start - ago),
            None => full_time(text).or_else(|| clock_time(text, self.start)),
        };
        let at = at.ok_or_else(|| field.must_be("a time such as `2026-03-01 17:30`, `08:30` or `-10m`"))?;
        if at > self.start {
            return Err(field.wrong(format!("this is later than the start, {}", self.start.format("%Y-%m-%d %H:%M"))));
        }
        Ok(at)
    }

    // --- the timeline ---------------------------------------------------------------------------------------------

    fn timeline(&mut self, field: &Field<'d>) -> Result<Vec<Step>> {
        let mut steps: Vec<Step> = Vec::new();
        for node in list(field)? {
            let at = steps.last().map_or(self.start, |step| step.at);
            let step = self.step(node, at, steps.len())?;
            steps.push(step);
        }
        if steps.is_empty() {
            return Err(field.wrong_key("a timeline without a step tells nothing"));
        }
        Ok(steps)
    }

    fn step(&mut self, node: &'d Node, previous: DateTime<Utc>, place: usize) -> Result<Step> {
        const COMMON: [&str; 8] = ["id", "at", "by", "event", "payload", "deliver", "agent", "expect"];
        let acts: Vec<&str> = ACTS.iter().map(|(name, _)| *name).collect();
        let names: Vec<&str> = COMMON.into_iter().chain(acts.iter().copied()).collect();
        let keys = Keys::read(self.document, node, "a step", &names)?;
        let at = keys.map("at", |f| step_time(f, previous))?.unwrap_or(previous);
        let id = keys.map("id", |f| self.new_step(f))?;
        let (delivery, again) = match keys.get("deliver") {
            Some(field) => self.delivery(field)?,
            None => (Delivery::default(), None),
        };
        let mut found = keys.fields.iter().filter(|f| acts.contains(&f.name));
        let (first, second) = (found.next(), found.next());
        if let Some(field) = second {
            return Err(field
                .wrong_key(format!(
                    "a step does one thing, and this one does `{}` already",
                    first.map_or("", |f| f.name)
                ))
                .with_hint("make it a step of its own; without `at:` it happens at the same time"));
        }
        let act = match (first, again) {
            (Some(field), Some(_)) => {
                return Err(field.wrong_key("a step that delivers another one again does nothing else"));
            }
            (None, Some(reference)) => Act::Again(reference),
            (Some(field), None) => self.act(field)?,
            (None, None) if keys.get("event").is_some() => Act::Raw,
            (None, None) => {
                let names: Vec<String> = acts.iter().map(|name| format!("`{name}`")).collect();
                let error = self.document.error_at(node, "in this step nothing happens");
                return Err(error.with_hint(format!("it needs one of {}, or `event`", listed(&names))));
            }
        };
        let by = match (keys.get("by"), &act) {
            (Some(field), _) => self.login(field)?,
            (None, Act::Again(_) | Act::Raw) => String::new(),
            (None, _) => keys.need("by").map(|_| String::new())?,
        };
        let payload = keys.get("payload");
        if let Some(field) = payload
            && act != Act::Raw
            && !matches!(field.value.kind, Kind::Map(_))
        {
            return Err(field.must_be("a mapping that is put over the usual payload"));
        }
        // What the step writes can be referred to from its own expectations on, not from its own act.
        if let Some(id) = &id {
            if matches!(act, Act::Comment { .. }) {
                self.comments.insert(id.clone());
            }
            self.steps.insert(id.clone(), place);
        }
        Ok(Step {
            line: self.line_of(node),
            id,
            at,
            by,
            act,
            event: keys.line("event")?,
            payload: payload.map(|f| json(f.value)),
            delivery,
            agent: keys.map("agent", |f| self.agent(f))?.unwrap_or_default(),
            expect: keys.map("expect", |f| self.expected(f))?.unwrap_or(Expected::Anything),
        })
    }

    fn delivery(&self, field: &Field<'d>) -> Result<(Delivery, Option<Reference>)> {
        let mut delivery = Delivery::default();
        let mut again = None;
        for item in field.items()? {
            let text = item.text().unwrap_or_default();
            let wrong = || {
                field
                    .wrong_at(item, format!("`deliver` does not know {}", item.in_words()))
                    .with_hint("write `late by 10m`, `twice`, `never` or `again STEP`")
            };
            match text.split_whitespace().collect::<Vec<_>>().as_slice() {
                ["twice"] => delivery.twice = true,
                ["never"] => delivery.never = true,
                ["late", "by", late] => delivery.late = Some(values::duration(late).map_err(|_| wrong())?),
                ["again", step] => again = Some(self.reference(field, item, step)?),
                _ => return Err(wrong()),
            }
        }
        Ok((delivery, again))
    }

    fn act(&mut self, field: &Field<'d>) -> Result<Act> {
        let read = ACTS.iter().find(|(name, _)| *name == field.name).map(|(_, read)| read);
        match read {
            Some(read) => read(self, field),
            None => Err(unknown(field, "a step", ACTS.iter().map(|(name, _)| *name))),
        }
    }

    fn expected(&self, field: &Field<'d>) -> Result<Expected> {
        match &field.value.kind {
            Kind::List(items) => {
                let all = items.iter().map(|item| self.expect(field, item)).collect::<Result<_>>()?;
                Ok(Expected::All(self.line_of(field.value), all))
            }
            Kind::Scalar(_, text) if text == "no run" => Ok(Expected::NoRun(self.line_of(field.value))),
            _ => Ok(Expected::Each(Box::new(self.expect(field, field.value)?))),
        }
    }

    fn expect(&self, field: &Field<'d>, node: &'d Node) -> Result<Expect> {
        let mut expect = Expect { line: self.line_of(node), ..Expect::default() };
        if node.text().is_some() {
            verdict(field, node, &mut expect)?;
            return Ok(expect);
        }
        let names = ["verdict", "event", "message", "link", "points-to", "claim", "outcome"];
        let keys = Keys::read(self.document, node, "an expectation", &names)?;
        if let Some(field) = keys.get("verdict") {
            verdict(field, field.value, &mut expect)?;
        }
        expect.event = keys.line("event")?;
        expect.message = keys.line("message")?;
        expect.link = keys.line("link")?;
        expect.claim = keys.map("claim", |f| f.count(1, MAX_CLAIM_NUMBER))?;
        expect.outcome = keys.map("outcome", outcome)?;
        expect.points_to = keys.map("points-to", |f| match f.text(LINE)?.as_str() {
            "other" => Ok(PointsTo::Other),
            step => self.reference(f, f.value, step).map(PointsTo::Step),
        })?;
        Ok(expect)
    }

    // --- the end --------------------------------------------------------------------------------------------------

    fn end(&self, field: &Field<'d>) -> Result<End> {
        let keys = self.keys(field, &["agent-starts", "runs", "issues", "pull-requests", "claims"])?;
        let count = |f: &Field<'_>| {
            let n = f.count(0, 100_000)?;
            Ok((self.line_of(f.key), usize::try_from(n).unwrap_or(usize::MAX)))
        };
        let mut end =
            End { agent_starts: keys.map("agent-starts", count)?, runs: keys.map("runs", count)?, ..End::default() };
        for name in ["issues", "pull-requests"] {
            let Some(field) = keys.get(name) else { continue };
            for item in field.fields()? {
                let number = key_number(&item)?;
                self.known_item(&item, item.key, number)?;
                let keys = self.keys(&item, &["state", "labels", "comments"])?;
                end.items.push(ItemEnd {
                    line: self.line_of(item.key),
                    number,
                    open: keys.map("state", |f| f.word(&[("open", true), ("closed", false)]))?,
                    labels: match keys.fields.iter().find(|f| f.name == "labels") {
                        Some(field) => Some(field.texts(LINE)?),
                        None => None,
                    },
                    comments: keys.map("comments", |f| count(f).map(|(_, n)| n))?,
                });
            }
        }
        if let Some(field) = keys.get("claims") {
            for node in list(field)? {
                end.claims.push(self.claim_end(node)?);
            }
        }
        Ok(end)
    }

    fn claim_end(&self, node: &'d Node) -> Result<ClaimEnd> {
        let names = ["task", "issue", "pull-request", "comment", "number", "cause", "outcome", "costs"];
        let keys = Keys::read(self.document, node, "a claim", &names)?;
        let word = |f: &Field<'_>| f.value.text().unwrap_or_default().to_owned();
        let absent = keys.get("outcome").is_some_and(|f| word(f) == "absent");
        Ok(ClaimEnd {
            line: self.line_of(node),
            name: self.claim_name(&keys)?,
            absent,
            cause: keys.map("cause", cause)?,
            outcome: match keys.get("outcome") {
                Some(field) if word(field) == "open" => Some(None),
                Some(field) if !absent => Some(Some(outcome(field)?)),
                _ => None,
            },
            costs: keys.map("costs", cents)?,
        })
    }

    // --- names ----------------------------------------------------------------------------------------------------

    fn line_of(&self, node: &Node) -> usize {
        self.document.error_at(node, "").position().map_or(0, |(line, _)| line)
    }

    fn login(&self, field: &Field<'_>) -> Result<String> {
        let text = field.text(LINE)?;
        if self.logins.contains(&text) {
            return Ok(text);
        }
        let error = field.wrong(format!("`{}` is neither one of `people` nor one of `bots`", shown(&text)));
        let meant = did_you_mean(&text, self.logins.iter().map(String::as_str));
        Err(match meant {
            Some(meant) => error.with_hint(format!("did you mean `{meant}`?")),
            None => error.with_hint(format!("add it: `people: {{{}: write}}`", shown(&text))),
        })
    }

    /// An issue or pull request that is there by now.
    fn item(&self, field: &Field<'_>) -> Result<u64> {
        let number = number(field)?;
        self.known_item(field, field.value, number)?;
        Ok(number)
    }

    fn known_item(&self, field: &Field<'_>, node: &Node, number: u64) -> Result<()> {
        if self.items.contains(&number) {
            return Ok(());
        }
        let there: Vec<String> = self.items.iter().map(u64::to_string).collect();
        Err(field
            .wrong_at(node, format!("there is no issue or pull request {number} by now"))
            .with_hint(format!("there is {}; `open` one, or add it under `github`", listed(&there))))
    }

    fn name(field: &Field<'_>) -> Result<String> {
        let name = field.text(LINE)?;
        let ok = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) && name != "other";
        if ok { Ok(name) } else { Err(field.must_be("a name of letters, digits and dashes other than `other`")) }
    }

    fn new_comment(&mut self, field: &Field<'_>) -> Result<String> {
        let name = Self::name(field)?;
        if !self.comments.insert(name.clone()) {
            return Err(field.wrong(format!("`{}` is the name of another comment already", shown(&name))));
        }
        Ok(name)
    }

    fn new_step(&self, field: &Field<'_>) -> Result<String> {
        let name = Self::name(field)?;
        if self.steps.contains_key(&name) || self.comments.contains(&name) {
            return Err(field.wrong(format!("`{}` is the name of something else already", shown(&name))));
        }
        Ok(name)
    }

    /// A comment, by the name of the step that wrote it or the name that `github` gives it.
    fn comment(&self, field: &Field<'_>) -> Result<String> {
        let name = field.text(LINE)?;
        if self.comments.contains(&name) {
            return Ok(name);
        }
        let error = field.wrong(format!("no comment is called `{}` by now", shown(&name)));
        Err(match did_you_mean(&name, self.comments.iter().map(String::as_str)) {
            Some(meant) => error.with_hint(format!("did you mean `{meant}`?")),
            None => error.with_hint("a comment is called by the `id` of the step that writes it"),
        })
    }

    /// `STEP` or `STEP.ACTION`.
    fn reference(&self, field: &Field<'_>, node: &Node, text: &str) -> Result<Reference> {
        let (name, action) = text.split_once('.').map_or((text, None), |(name, action)| (name, Some(action)));
        if let Some(step) = self.steps.get(name) {
            return Ok(Reference { step: *step, action: action.map(str::to_owned) });
        }
        let error = field.wrong_at(node, format!("no earlier step is called `{}`", shown(name)));
        Err(match did_you_mean(name, self.steps.keys().map(String::as_str)) {
            Some(meant) => error.with_hint(format!("did you mean `{meant}`?")),
            None => error.with_hint("give that step an `id`"),
        })
    }

    fn step_named(&self, field: &Field<'_>) -> Result<Reference> {
        let text = field.text(LINE)?;
        self.reference(field, field.value, &text)
    }

    fn labels_of(&self, field: &Field<'d>) -> Result<(u64, Vec<String>)> {
        let keys = self.keys(field, &["issue", "label"])?;
        Ok((self.item(keys.need("issue")?)?, keys.need("label")?.texts(LINE)?))
    }

    fn issue(&self, field: &Field<'d>, what: IssueAct) -> Result<Act> {
        let keys = self.keys(field, &["issue"])?;
        Ok(Act::Issue { number: self.item(keys.need("issue")?)?, what })
    }

    fn assign(&self, field: &Field<'d>, away: bool) -> Result<Act> {
        let keys = self.keys(field, &["issue", "to"])?;
        Ok(Act::Assign { number: self.item(keys.need("issue")?)?, to: self.login(keys.need("to")?)?, away })
    }
}

type ReadAct = for<'d> fn(&mut Reader<'d>, &Field<'d>) -> Result<Act>;

/// The keys of a step that do something, and how each is read.
const ACTS: [(&str, ReadAct); 16] = [
    ("open", |reader, field| {
        let keys = reader.keys(field, &["issue", "title", "body", "labels"])?;
        let number = number(keys.need("issue")?)?;
        if !reader.items.insert(number) {
            return Err(keys.need("issue")?.wrong(format!("{number} is there already")));
        }
        Ok(Act::Open {
            number,
            title: keys.prose("title")?.unwrap_or_default(),
            body: keys.prose("body")?.unwrap_or_default(),
            labels: keys.map("labels", |f| f.texts(LINE))?.unwrap_or_default(),
        })
    }),
    ("comment", |reader, field| {
        let keys = reader.keys(field, &["issue", "pull-request", "text"])?;
        let item = match keys.get("pull-request") {
            Some(field) => reader.item(field)?,
            None => reader.item(keys.need("issue")?)?,
        };
        Ok(Act::Comment { item, text: prose(keys.need("text")?)? })
    }),
    ("edit", |reader, field| {
        let keys = reader.keys(field, &["issue", "title", "body", "comment", "text"])?;
        if let Some(comment) = keys.get("comment") {
            return Ok(Act::EditComment { comment: reader.comment(comment)?, text: prose(keys.need("text")?)? });
        }
        let number = reader.item(keys.need("issue")?)?;
        let (title, body) = (keys.prose("title")?, keys.prose("body")?);
        if title.is_none() && body.is_none() {
            return Err(field.wrong("this edits neither the `title` nor the `body`"));
        }
        Ok(Act::EditIssue { number, title, body })
    }),
    ("delete", |reader, field| {
        let keys = reader.keys(field, &["issue", "comment"])?;
        match keys.get("comment") {
            Some(comment) => Ok(Act::DeleteComment { comment: reader.comment(comment)? }),
            None => Ok(Act::Issue { number: reader.item(keys.need("issue")?)?, what: IssueAct::Delete }),
        }
    }),
    ("add-label", |reader, field| reader.labels_of(field).map(|(number, labels)| Act::AddLabels { number, labels })),
    ("remove-label", |reader, field| {
        reader.labels_of(field).map(|(number, labels)| Act::RemoveLabels { number, labels })
    }),
    ("delete-label", |_, field| Ok(Act::DeleteLabels { labels: field.texts(LINE)? })),
    ("close", |reader, field| reader.issue(field, IssueAct::Close)),
    ("reopen", |reader, field| reader.issue(field, IssueAct::Reopen)),
    ("lock", |reader, field| reader.issue(field, IssueAct::Lock)),
    ("unlock", |reader, field| reader.issue(field, IssueAct::Unlock)),
    ("assign", |reader, field| reader.assign(field, false)),
    ("unassign", |reader, field| reader.assign(field, true)),
    ("change-policy", |reader, field| Ok(Act::Policy { text: reader.policy(field)? })),
    ("rerun", |reader, field| reader.step_named(field).map(Act::Rerun)),
    ("cancel", |reader, field| reader.step_named(field).map(Act::Cancel)),
];

// --- values ---------------------------------------------------------------------------------------------------------

fn list<'d>(field: &Field<'d>) -> Result<&'d [Node]> {
    match &field.value.kind {
        Kind::List(items) => Ok(items),
        _ => Err(field.must_be("a list")),
    }
}

/// A text of any length and shape.
fn prose(field: &Field<'_>) -> Result<String> {
    field.value.text().map(str::to_owned).ok_or_else(|| field.must_be("a text"))
}

fn number(field: &Field<'_>) -> Result<u64> {
    let n = field.value.text().and_then(|t| t.parse().ok()).filter(|n| *n > 0);
    n.ok_or_else(|| field.must_be("a number above 0"))
}

/// The number that is a mapping's key.
fn key_number(field: &Field<'_>) -> Result<u64> {
    let n = field.name.parse().ok().filter(|n| *n > 0);
    n.ok_or_else(|| field.wrong_key(format!("`{}` must be a number above 0", shown(field.name))))
}

fn duration(field: &Field<'_>) -> Result<TimeDelta> {
    let text = field.value.text().ok_or_else(|| field.must_be("a duration such as `3m`"))?;
    values::duration(text).map_err(|rest| field.wrong(format!("`{}: {}` {rest}", field.name, shown(text))))
}

fn cents(field: &Field<'_>) -> Result<u64> {
    let text = field.value.text().ok_or_else(|| field.must_be("an amount of US dollars such as `0.42`"))?;
    values::cents(text).map_err(|rest| field.wrong(format!("`{}: {}` {rest}", field.name, shown(text))))
}

fn task(field: &Field<'_>) -> Result<Task> {
    field.text(LINE)?.parse().map_err(|error: crate::core::key::BadTask| field.wrong(error.to_string()))
}

fn cause(field: &Field<'_>) -> Result<Cause> {
    field.word(&Cause::ALL.map(|cause| (cause.as_str(), cause)))
}

fn outcome(field: &Field<'_>) -> Result<Outcome> {
    field.word(&Outcome::ALL.map(|outcome| (outcome.as_str(), outcome)))
}

/// `VERDICT`, `VERDICT REASON` or `proceed CAUSE`.
fn verdict(field: &Field<'_>, node: &Node, expect: &mut Expect) -> Result<()> {
    let text = node.text().unwrap_or_default();
    let (first, rest) = text.split_once(' ').map_or((text, None), |(first, rest)| (first, Some(rest.trim())));
    let wrong = |sentence: String, meant: Option<&str>| {
        let error = field.wrong_at(node, sentence);
        match meant {
            Some(meant) => error.with_hint(format!("did you mean `{meant}`?")),
            None => error.with_hint("write it like `proceed`, `skip in-progress` or `no run`"),
        }
    };
    let verdicts = ["proceed", "skip", "defer", "review", "error"];
    let Some(verdict) = Verdict::parse(first) else {
        let meant = did_you_mean(first, verdicts);
        return Err(wrong(format!("`{}` is no verdict", shown(first)), meant));
    };
    expect.verdict = Some(verdict);
    let Some(word) = rest else { return Ok(()) };
    let cause = Cause::ALL.into_iter().find(|cause| cause.as_str() == word);
    match (verdict, cause, Reason::parse(word)) {
        (Verdict::Proceed, Some(cause), _) => expect.cause = Some(cause),
        (_, None, Some(reason)) => expect.reason = Some(reason),
        (Verdict::Proceed, ..) => {
            let meant = did_you_mean(word, Cause::ALL.map(Cause::as_str));
            return Err(wrong(format!("`{}` is no cause of a claim", shown(word)), meant));
        }
        _ => {
            let meant = did_you_mean(word, Reason::ALL.iter().map(|reason| reason.code()));
            return Err(wrong(format!("`{}` is no reason code", shown(word)), meant));
        }
    }
    Ok(())
}

fn events(field: &Field<'_>) -> Result<Vec<(String, Vec<String>)>> {
    let known = |field: &Field<'_>, node: &Node, name: &str| {
        EVENTS.iter().find(|(event, _)| *event == name).ok_or_else(|| {
            let names = EVENTS.map(|(event, _)| format!("`{event}`"));
            let error = field.wrong_at(node, format!("only {} are simulated, not `{}`", listed(&names), shown(name)));
            match did_you_mean(name, EVENTS.iter().map(|(event, _)| *event)) {
                Some(meant) => error.with_hint(format!("did you mean `{meant}`?")),
                None => error,
            }
        })
    };
    if !matches!(field.value.kind, Kind::Map(_)) {
        return field
            .items()?
            .iter()
            .map(|item| Ok((known(field, item, item.text().unwrap_or_default())?.0.to_owned(), Vec::new())))
            .collect();
    }
    let mut on = Vec::new();
    for field in field.fields()? {
        let (event, actions) = known(&field, field.key, field.name)?;
        let words: Vec<(&str, &str)> = actions.iter().map(|action| (*action, *action)).collect();
        let wanted = field.items()?.iter().map(|item| field.word_of(item, &words).map(str::to_owned));
        on.push(((*event).to_owned(), wanted.collect::<Result<_>>()?));
    }
    Ok(on)
}

/// `2026-03-02 09:00`, with or without seconds.
fn full_time(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim_end_matches(" UTC").trim_end_matches('Z').replacen('T', " ", 1);
    ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"]
        .into_iter()
        .find_map(|form| NaiveDateTime::parse_from_str(&text, form).ok())
        .map(|at| at.and_utc())
}

/// `09:00`, with or without seconds, on the day of another time.
fn clock_time(text: &str, day: DateTime<Utc>) -> Option<DateTime<Utc>> {
    ["%H:%M:%S", "%H:%M"]
        .into_iter()
        .find_map(|form| NaiveTime::parse_from_str(text, form).ok())
        .map(|time| day.date_naive().and_time(time).and_utc())
}

/// When a step happens: a full time, a clock time of the day of the step before, or `+10m` after it.
fn step_time(field: &Field<'_>, previous: DateTime<Utc>) -> Result<DateTime<Utc>> {
    let text = field.value.text().unwrap_or_default();
    let at = match text.strip_prefix('+') {
        Some(later) => values::duration(later).ok().map(|later| previous + later),
        None => full_time(text).or_else(|| clock_time(text, previous)),
    };
    let at = at.ok_or_else(|| field.must_be("a time such as `09:30`, `+10m` or `2026-03-03 09:00`"))?;
    if at < previous {
        let sentence = format!("this is earlier than the step before, {}", previous.format("%Y-%m-%d %H:%M:%S"));
        return Err(field.wrong(sentence).with_hint("for the next day, write the date too: `2026-03-03 09:00`"));
    }
    Ok(at)
}

/// A piece of the file as JSON.
fn json(node: &Node) -> Value {
    match &node.kind {
        Kind::Scalar(Class::Null, _) => Value::Null,
        Kind::Scalar(Class::Bool, text) => Value::Bool(text.eq_ignore_ascii_case("true")),
        Kind::Scalar(Class::Number, text) => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())),
        Kind::Scalar(Class::Text, text) => Value::String(text.clone()),
        Kind::List(items) => items.iter().map(json).collect(),
        Kind::Map(entries) => Value::Object(
            entries
                .iter()
                .filter_map(|(key, value)| match &key.kind {
                    Kind::Scalar(_, name) => Some((name.clone(), json(value))),
                    Kind::List(_) | Kind::Map(_) => None,
                })
                .collect(),
        ),
    }
}
