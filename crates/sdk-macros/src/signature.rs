//! The form of a workflow: `async fn name(ctx: Ctx, input: Input) -> Result<Output, Failure>`.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Error, FnArg, Pat, ReturnType, Signature, Type, TypeReference};

/// What of a signature the expansion needs.
pub(crate) struct Types {
    pub(crate) context: Type,
    pub(crate) input: Type,
    pub(crate) returned: Type,
}

/// The types, if the function has the form of a workflow.
pub(crate) fn check(signature: &Signature) -> Result<Types, Error> {
    if let Some(receiver) = signature.receiver() {
        return wrong(receiver, "a workflow is a function of its own, not a method: a run outlives every object");
    }
    if signature.asyncness.is_none() {
        return wrong(signature.fn_token, "this function is not async");
    }
    if let Some(unsafety) = &signature.unsafety {
        return wrong(unsafety, "a workflow cannot be unsafe");
    }
    if !signature.generics.params.is_empty() {
        return wrong(&signature.generics, "a workflow cannot be generic: its name stands for one piece of code");
    }
    let (context, input) = arguments(signature)?;
    let ReturnType::Type(_, returned) = &signature.output else {
        return wrong(&signature.ident, "this function returns nothing");
    };
    if let Some(borrowed) = borrowed(returned) {
        return wrong(borrowed, "the output owns its data: it is kept in the journal");
    }
    Ok(Types { context, input, returned: (**returned).clone() })
}

/// The types of the context and of the input.
fn arguments(signature: &Signature) -> Result<(Type, Type), Error> {
    let inputs: Vec<_> = signature.inputs.iter().collect();
    let (context, input) = match inputs[..] {
        [FnArg::Typed(context), FnArg::Typed(input)] => (context, input),
        [] => return wrong(&signature.ident, "this function takes nothing"),
        [FnArg::Typed(only)] if is_context(&only.ty) => {
            return wrong(only, "the input is missing; write `_input: ()` if there is none");
        }
        [only] => return wrong(only, "the context is missing"),
        _ => return wrong(&signature.inputs, "a workflow takes one input; put several values into a struct or a tuple"),
    };
    if let Pat::Wild(_) = *context.pat {
        return wrong(&context.pat, "a workflow needs its context");
    }
    if let Type::Reference(_) = *context.ty {
        return wrong(&context.ty, "the context is taken by value");
    }
    if is_context(&input.ty) && !is_context(&context.ty) {
        return wrong(&signature.inputs, "the context comes first");
    }
    if let Some(borrowed) = borrowed(&input.ty) {
        return wrong(borrowed, "the input owns its data: it is read from the journal");
    }
    if let Type::ImplTrait(_) = *input.ty {
        return wrong(&input.ty, "the input has one type, which can be read from the journal");
    }
    Ok(((*context.ty).clone(), (*input.ty).clone()))
}

fn wrong<T>(place: impl ToTokens, why: &str) -> Result<T, Error> {
    Err(Error::new_spanned(place, format!("{why}. A workflow is `async fn name(ctx: Ctx, input: Input) -> Result<Output, Failure>`")))
}

fn is_context(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Ctx"))
}

/// Whether something in it borrows from somebody.
pub(crate) fn borrows(output: &ReturnType) -> bool {
    matches!(output, ReturnType::Type(_, returned) if borrowed(returned).is_some())
}

/// What in a type borrows from somebody, if something does.
fn borrowed(ty: &Type) -> Option<TokenStream> {
    struct Search(Option<TokenStream>);
    impl<'ast> Visit<'ast> for Search {
        fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
            if reference.lifetime.as_ref().is_none_or(|lifetime| lifetime.ident != "static") {
                self.0.get_or_insert_with(|| reference.to_token_stream());
            }
            visit::visit_type_reference(self, reference);
        }
    }
    let mut search = Search(None);
    search.visit_type(ty);
    search.0
}
