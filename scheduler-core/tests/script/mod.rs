//! Reads a script, plans, and writes the plan in words. A script that cannot be read stops the test.

use domain::kernel::{Id, JobId, NodeId, TenantId};
use scheduler_core::{Cards, Demand, Facts, FreeCard, Job, Lang, Node, Readiness, Room, Why, plan};
use std::{collections::BTreeMap, fmt::Write};
use uuid::Uuid;

#[derive(Default)]
struct Script {
    facts: Facts,
    nodes: BTreeMap<String, NodeId>,
    jobs: BTreeMap<String, JobId>,
    reasons: Vec<Why>,
    shows_digests: bool,
}

/// The words after a line's name: `key value`, and `cards` with its count and model or its indices.
struct Words<'a>(Vec<&'a str>);

impl Words<'_> {
    fn after(&self, key: &str, offset: usize) -> Option<&str> {
        let at = self.0.iter().position(|word| *word == key)?;
        Some(self.0.get(at + offset).unwrap_or_else(|| panic!("nothing after {key}")))
    }

    fn number(&self, key: &str) -> i64 {
        self.after(key, 1).map_or(0, |text| text.parse().unwrap_or_else(|_| panic!("{key}: not a number: {text}")))
    }

    fn demand(&self) -> Demand {
        let cards = self.after("cards", 1).map(|count| Cards {
            model: self.after("cards", 2).unwrap().parse().unwrap(),
            count: count.parse().unwrap(),
        });
        Demand { cards, milli_cores: self.number("cores") * 1000, memory_mib: self.number("memory") * 1024 }
    }
}

/// The plan of a script, in words.
pub(crate) fn run(given: &str) -> String {
    let mut script = Script::default();
    for line in given.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        script.read(line);
    }
    script.answer()
}

impl Script {
    fn read(&mut self, line: &str) {
        if let Some(json) = line.strip_prefix("why ") {
            let why: Why = serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
            assert_eq!(serde_json::to_string(&why).unwrap(), json, "a reason is stored one way");
            return self.reasons.push(why);
        }
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["show", "digests"] => self.shows_digests = true,
            ["node", name, ready, ..] => self.node(name, ready, &Words(words[3..].to_vec())),
            ["used", name, ..] => self.used(name, &Words(words[2..].to_vec())),
            ["job", name, ..] => self.job(name, &Words(words[2..].to_vec())),
            _ => panic!("not a script line: {line}"),
        }
    }

    fn node(&mut self, name: &str, ready: &str, words: &Words<'_>) {
        let id = NodeId::from_uuid(Uuid::from_u128(self.nodes.len() as u128 + 1));
        let Demand { milli_cores, memory_mib, .. } = words.demand();
        let groups = words.0.windows(3).filter(|group| group[0] == "cards");
        let models = groups.flat_map(|group| std::iter::repeat_n(group[2], group[1].parse().unwrap()));
        let cards = models.zip(0..).map(|(model, index)| FreeCard { index, model: model.parse().unwrap() }).collect();
        let total = Room { milli_cores, memory_mib, cards };
        let ready: Readiness = serde_json::from_value(ready.into()).unwrap();
        self.facts.nodes.push(Node { id, ready, free: total.clone(), total });
        assert!(self.nodes.insert(name.into(), id).is_none(), "node {name} twice");
    }

    fn used(&mut self, name: &str, words: &Words<'_>) {
        let id = self.nodes[name];
        let free = &mut self.facts.nodes.iter_mut().find(|node| node.id == id).unwrap().free;
        free.milli_cores -= words.number("cores") * 1000;
        free.memory_mib -= words.number("memory") * 1024;
        for index in words.after("cards", 1).into_iter().flat_map(|list| list.split(',')) {
            let index: u32 = index.parse().unwrap();
            let place = free.cards.iter().position(|card| card.index == index);
            free.cards.remove(place.unwrap_or_else(|| panic!("{name} has no free card {index}")));
        }
    }

    fn job(&mut self, name: &str, words: &Words<'_>) {
        let place = self.jobs.len() as i64 + 1;
        let id = JobId::from_uuid(Uuid::from_u128(place as u128));
        self.facts.queue.push(Job {
            id,
            tenant: TenantId::PLATFORM,
            submitted_position: words.after("position", 1).map_or(place, |text| text.parse().unwrap()),
            priority: i16::try_from(words.number("priority")).unwrap(),
            demand: words.demand(),
        });
        assert!(self.jobs.insert(name.into(), id).is_none(), "job {name} twice");
    }

    fn answer(&self) -> String {
        let plan = plan(&self.facts);
        let mut text = String::new();
        for placed in &plan.placements {
            let (job, node) = (name(&self.jobs, placed.job), name(&self.nodes, placed.node));
            let cards: Vec<String> = placed.cards.iter().map(ToString::to_string).collect();
            let cards = if cards.is_empty() { String::new() } else { format!(" cards {}", cards.join(",")) };
            writeln!(text, "start {job} on {node}{cards}\n  {}: {}", placed.rule, placed.score).unwrap();
        }
        for (job, why) in &plan.waiting {
            writeln!(text, "wait {}: {}", name(&self.jobs, *job), serde_json::to_string(why).unwrap()).unwrap();
            in_words(&mut text, why);
        }
        for why in &self.reasons {
            writeln!(text, "why {}", serde_json::to_value(why).unwrap()["reason"]).unwrap();
            in_words(&mut text, why);
        }
        if self.shows_digests {
            writeln!(text, "facts {}\nplan {}", plan.facts_digest, plan.digest).unwrap();
        }
        text
    }
}

fn in_words(text: &mut String, why: &Why) {
    for (tag, lang) in [("zh", Lang::Zh), ("en", Lang::En)] {
        writeln!(text, "  {tag}: {}\n  {tag}: → {}", why.render(lang), why.advice(lang)).unwrap();
    }
}

fn name<I: PartialEq>(names: &BTreeMap<String, I>, id: I) -> &str {
    names.iter().find_map(|(name, known)| (*known == id).then_some(name)).unwrap()
}
