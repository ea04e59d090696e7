//! Creating a plan.

use crate::app::App;
use crate::ask::{Body, Command, Nothing, Query};
use crate::problem::Problem;
use crate::shapes::{CreatePlan, Data, Plan};
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use std::sync::Arc;
use steadfast_kernel::{Answer, Payload};

/// Creates a plan with a task for every tenant, or finds the one of that id. It is durable when this answers, and nothing of it begins before it is started.
#[utoipa::path(post, path = "/v1/plans", operation_id = "plans_create", tag = "plans", request_body = CreatePlan,
    params(("Idempotency-Key" = Option<String>, Header, description = "Kept on record. It is `id` that makes a creation one.")), responses(
    (status = 201, description = "The plan is there.", body = Plan),
    (status = 200, description = "The plan of that id, which was created in the same way before.", body = Plan),
    (status = 404, description = "There is no such definition."),
    (status = 409, description = "There is another plan of that id already, or tenants are locked by others: `locked` names all of them."),
    (status = 422, description = "There is no tenant or there are too many, nothing could be under way at once, or the definition does not take those vars."),
))]
pub(in crate::api) async fn create(
    State(app): State<Arc<App>>,
    _: Query<Nothing>,
    command: Command,
    Body(asked): Body<CreatePlan>,
) -> Result<(StatusCode, Json<Plan>), Problem> {
    let plan = steadfast_runtime::CreatePlan {
        definition: asked.definition,
        tenants: asked.tenants,
        id: asked.id,
        input: vars(asked.vars)?,
        max_concurrency: asked.max_concurrency,
        origin: command.because(asked.reason)?,
    };
    let (plan, answer) = app.engine.create_plan(plan).await?;
    let status = if answer == Answer::Created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(app.plan(&plan).await?)))
}

fn vars(vars: Option<Data>) -> Result<Payload, Problem> {
    match vars {
        None => Ok(Payload::json("{}")),
        Some(vars) if vars.as_str().trim_start().starts_with('{') => Ok(vars.into_payload()),
        Some(_) => Err(Problem::bad_request("vars has to be an object, or be left out")),
    }
}
