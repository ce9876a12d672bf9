//! Each story twice: on SQLite and on PostgreSQL.
//!
//! Owns: the macro that makes the tests. A story takes the engine and passes it to `World::new`; one that is not named to
//! the macro is dead code, which no build lets through.

/// Makes two tests of each of these stories, `sqlite::story` and `postgres::story`.
#[macro_export]
macro_rules! on_both {
    ($($story:ident),+ $(,)?) => {
        $crate::on_both!(@on sqlite Sqlite $($story)+);
        $crate::on_both!(@on postgres Postgres $($story)+);
    };
    (@on $name:ident $engine:ident $($story:ident)+) => {
        mod $name {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $story() {
                    super::$story(store::Engine::$engine).await;
                }
            )+
        }
    };
}
