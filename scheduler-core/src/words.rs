//! The reasons in words, for an operator at the end of a long shift: what is the matter, and what to do next.
//!
//! Owns: the Chinese and English texts. Invariants: a text is made from a reason's fields alone; every reason has both
//! texts in both languages; amounts carry their units.

use crate::{
    Demand, Shortage, Why,
    fit::{self, Gap, RoomSummary},
};
use domain::kernel::{MILLI, Model, Resource};
use serde::{Deserialize, Serialize};
use std::fmt;

const GIB_MIB: i64 = 1024;

/// The languages that reasons are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lang {
    Zh,
    En,
}

impl Lang {
    /// The text in this language.
    fn of<T>(self, zh: T, en: T) -> T {
        match self {
            Self::Zh => zh,
            Self::En => en,
        }
    }

    fn list<T: fmt::Display>(self, items: impl IntoIterator<Item = T>) -> String {
        let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
        items.join(self.of("、", ", "))
    }

    fn counted(self, count: impl Into<i64>, zh: &str, en: &str) -> String {
        let count = count.into();
        let plural = if count == 1 { "" } else { "s" };
        self.of(format!("{count} {zh}"), format!("{count} {en}{plural}"))
    }

    fn cards(self, count: impl Into<i64>, model: &Model) -> String {
        self.counted(count, &format!("张 {model} 卡"), &format!("{model} card"))
    }

    fn cores(self, milli: i64) -> String {
        let plural = if milli == MILLI { "" } else { "s" };
        self.of(format!("{} 核", thousandths(milli)), format!("{} core{plural}", thousandths(milli)))
    }

    fn memory(self, mib: i64) -> String {
        let amount = mebibytes(mib);
        self.of(format!("{amount} 内存"), format!("{amount} of memory"))
    }

    /// An amount of what is short, in its own unit; the sentence has said which cards.
    fn amount(self, short: &Shortage, amount: i64) -> String {
        match short {
            Shortage::Cards { .. } => self.of(format!("{amount} 张"), amount.to_string()),
            Shortage::Cores => self.cores(amount),
            Shortage::Memory => mebibytes(amount),
        }
    }
}

impl Why {
    /// What is the matter, in one or two sentences.
    pub fn render(&self, lang: Lang) -> String {
        match self {
            Self::NoSuchModel { model, known } if known.is_empty() => lang.of(
                format!("没有任何节点装有 {model} 卡，所有节点都没有加速卡。"),
                format!("No node has a card of the model {model}; no node has cards at all."),
            ),
            Self::NoSuchModel { model, known } => lang.of(
                format!("没有任何节点装有 {model} 卡，现有型号：{}。", lang.list(known)),
                format!("No node has a card of the model {model}. The models there are: {}.", lang.list(known)),
            ),
            Self::NeverFits { need, largest } => never(lang, need, *largest),
            Self::InsufficientFree { short, need, best_free, free_total, fragmented } => {
                insufficient(lang, short, [*need, *best_free, *free_total], *fragmented)
            }
            Self::NodesUnavailable { drained: 0, unreachable: 0 } => {
                lang.of("还没有任何节点加入。".into(), "No node has joined yet.".into())
            }
            Self::NodesUnavailable { drained, unreachable } => {
                let counts = [(drained, "个已排空", "drained"), (unreachable, "个失联", "unreachable")];
                let states = counts.iter().filter(|(count, ..)| **count > 0);
                let states = lang.list(states.map(|(count, zh, en)| format!("{count} {}", lang.of(zh, en))));
                lang.of(
                    format!("放得下它的节点都不接新作业：{states}。"),
                    format!("No node that could hold it takes new work: {states}."),
                )
            }
            Self::QueuePosition { ahead } => lang.of(
                format!("本来放得下，但本轮排在前面的 {ahead} 个作业先占了空位。"),
                format!("It would have fitted, but {} before it took the room.", lang.counted(*ahead, "个作业", "job")),
            ),
            Self::TenantSuspended { tenant } => lang.of(
                format!("租户 {tenant} 已被暂停，其下不启动新作业。"),
                format!("The tenant {tenant} is suspended; nothing new is started for it or below it."),
            ),
            Self::QuotaExceeded { resource, wanted_milli, free_milli } => {
                let (wanted, free) = (held(lang, resource, *wanted_milli), held(lang, resource, (*free_milli).max(0)));
                lang.of(
                    format!("租户配额不足：需要 {wanted}，配额内只剩 {free}。"),
                    format!("The tenant's quota is too small: it needs {wanted}, the quota has {free} left."),
                )
            }
        }
    }

    /// What to do next.
    pub fn advice(&self, lang: Lang) -> String {
        let (zh, en) = match self {
            Self::NoSuchModel { known, .. } if known.is_empty() => (
                "请先接入带加速卡的节点，或改为不用卡的作业。",
                "Join a node with cards, or submit the job without cards.",
            ),
            Self::NoSuchModel { .. } => (
                "请核对型号拼写，改用现有型号重新提交，或接入装有该型号的节点。",
                "Check the spelling, submit it again for a model that is there, or join a node with that model.",
            ),
            Self::NeverFits { .. } => (
                "再等也不会启动：请取消后减少单作业用量重新提交，或接入更大的节点。",
                "Waiting will not help: cancel it and submit it again asking for less, or join a larger node.",
            ),
            Self::InsufficientFree { fragmented: true, .. } => (
                "等同一节点腾出足够空位即可启动，它的排队位置不变；若小作业总是先占走空位，请暂缓提交小作业，或减少单作业用量。",
                "It keeps its place and starts once enough is free on one node. If smaller jobs keep taking what falls \
                 free, hold them back for a while, or ask for less per job.",
            ),
            Self::InsufficientFree { .. } => (
                "等在跑的作业结束即可，它的排队位置不变；若小作业总是先占走空位，请暂缓提交小作业；若急用，请结束部分作业或减少用量。",
                "It keeps its place and starts once enough work has ended. If smaller jobs keep taking what falls free, \
                 hold them back for a while; if it is urgent, end other work or ask for less.",
            ),
            Self::NodesUnavailable { drained: 0, unreachable: 0 } => {
                ("请先接入一个节点。", "Join a node to the cluster.")
            }
            Self::NodesUnavailable { unreachable: 0, .. } => (
                "维护结束后，请让已排空的节点恢复接单。",
                "Let the drained nodes take work again once maintenance is over.",
            ),
            Self::NodesUnavailable { drained: 0, .. } => {
                ("请检查失联节点的电源、网络和代理程序。", "Check power, network and agent of the unreachable nodes.")
            }
            Self::NodesUnavailable { .. } => (
                "请检查失联节点的电源、网络和代理程序；维护结束后，让已排空的节点恢复接单。",
                "Check power, network and agent of the unreachable nodes; let the drained ones take work again once \
                 maintenance is over.",
            ),
            Self::QueuePosition { .. } => (
                "不用处理，它的排队位置不变，有空位时比后来的作业先轮到它；若急用，需要更高的优先级。",
                "Nothing to do: it keeps its place and is offered free room before later jobs. If it is urgent, it needs \
                 a higher priority.",
            ),
            Self::TenantSuspended { .. } => (
                "不用处理作业：它的配额、余额和排队位置都保留；请联系平台运营方恢复该租户。",
                "Nothing to do for the job: it keeps its quota, its money and its place. Ask an operator to resume the tenant.",
            ),
            Self::QuotaExceeded { .. } => (
                "请结束该租户的部分作业以释放配额，或申请提高配额。",
                "End some of the tenant's work to free its quota, or request a larger quota.",
            ),
        };
        lang.of(zh, en).into()
    }
}

/// Names only what is too large, beside what the closest node has of it.
fn never(lang: Lang, need: &Demand, largest: RoomSummary) -> String {
    let gap = Gap::of(need, largest);
    let (mut needs, mut has) = (Vec::new(), Vec::new());
    if let Some(wanted) = fit::cards(need).filter(|_| gap.cards > 0) {
        needs.push(lang.cards(wanted.count, &wanted.model));
        has.push(lang.cards(largest.cards, &wanted.model));
    }
    if gap.milli_cores > 0 {
        needs.push(lang.cores(need.milli_cores));
        has.push(lang.cores(largest.milli_cores.max(0)));
    }
    if gap.memory_mib > 0 {
        needs.push(lang.memory(need.memory_mib));
        has.push(lang.memory(largest.memory_mib.max(0)));
    }
    let (needs, has) = (lang.list(needs), lang.list(has));
    lang.of(
        format!("没有节点放得下，即使全空：需要 {needs}，最接近的节点只有 {has}。"),
        format!("No node could hold it, even when empty: it needs {needs}; the closest node has {has}."),
    )
}

/// The amounts are what is needed, what the closest node has free, and what all usable nodes have free.
fn insufficient(lang: Lang, short: &Shortage, amounts: [i64; 3], fragmented: bool) -> String {
    let what = match short {
        Shortage::Cards { model } => lang.of(format!(" {model} 卡"), format!("{model} cards")),
        Shortage::Cores => lang.of(" CPU 核".into(), "cores".into()),
        Shortage::Memory => lang.of("内存".into(), "memory".into()),
    };
    let [need, best, total] = amounts.map(|amount| lang.amount(short, amount));
    if fragmented {
        lang.of(
            format!(
                "空闲{what}总量够（{total}），但没有一个节点能同时满足全部需求：需要 {need}，最接近的节点空闲 {best}。"
            ),
            format!(
                "Enough free {what} in total ({total}), but no single node has all that it needs: it needs {need}; the \
                 closest node has {best} free."
            ),
        )
    } else {
        lang.of(
            format!("空闲{what}不够：需要 {need}，最接近的节点空闲 {best}，能用的节点合计空闲 {total}。"),
            format!(
                "Not enough free {what}: it needs {need}; the closest node has {best} free, all usable nodes together \
                 {total}."
            ),
        )
    }
}

/// Thousandths of a resource, in its unit.
fn held(lang: Lang, resource: &Resource, milli: i64) -> String {
    match resource {
        Resource::Core => lang.cores(milli),
        Resource::Card(model) => {
            let plural = if milli == MILLI { "" } else { "s" };
            let count = thousandths(milli);
            lang.of(format!("{count} 张 {model} 卡"), format!("{count} {model} card{plural}"))
        }
    }
}

/// `1500` is `1.5`, exactly.
fn thousandths(milli: i64) -> String {
    let (whole, rest) = (milli / MILLI, (milli % MILLI).abs());
    if rest == 0 { whole.to_string() } else { format!("{whole}.{}", format!("{rest:03}").trim_end_matches('0')) }
}

fn mebibytes(mib: i64) -> String {
    if mib != 0 && mib % GIB_MIB == 0 { format!("{} GiB", mib / GIB_MIB) } else { format!("{mib} MiB") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_and_short() {
        assert_eq!([0, 5, 1500, 1000, 64_000, 10_250].map(thousandths), ["0", "0.005", "1.5", "1", "64", "10.25"]);
        assert_eq!([0, 1, 1024, 1536, 524_288].map(mebibytes), ["0 MiB", "1 MiB", "1 GiB", "1536 MiB", "512 GiB"]);
    }
}
