//! The `#[workflow]` attribute. Use it through the `steadfast` package.

mod purity;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::spanned::Spanned;
use syn::{Error, FnArg, ItemFn, LitStr, Pat, ReturnType, Signature, Type};

/// Makes a workflow of an async function that takes a `Ctx` and an input and returns `Result<Output, Failure>`.
///
/// The function's name becomes a value of its own type, to be given to `register`; it is also the workflow's registered name, unless
/// `#[workflow(name = "…")]` says otherwise. The name is stored with every run: keep it when you rename the function.
///
/// Code between steps must take the same way again when it is replayed. What obviously cannot, a wall clock, a random number, a spawned task, a sleep that
/// is not durable, is refused at compile time with what to use instead, unless it stands inside a closure, as the code of steps does.
#[proc_macro_attribute]
pub fn workflow(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let name = match registered_name(arguments) {
        Ok(name) => name,
        Err(error) => return error.into_compile_error().into(),
    };
    let function = syn::parse_macro_input!(item as ItemFn);
    expand(name, function).unwrap_or_else(Error::into_compile_error).into()
}

fn registered_name(arguments: TokenStream) -> Result<Option<LitStr>, Error> {
    let mut name = None;
    let parser = syn::meta::parser(|meta| {
        if !meta.path.is_ident("name") {
            return Err(meta.error("unknown setting; there is only `name = \"…\"`"));
        }
        name = Some(meta.value()?.parse::<LitStr>()?);
        Ok(())
    });
    syn::parse::Parser::parse(parser, arguments)?;
    if let Some(name) = &name {
        check_name(name)?;
    }
    Ok(name)
}

/// The rule for names of workflows, so that a bad one does not have to wait for the program to start.
fn check_name(name: &LitStr) -> Result<(), Error> {
    let value = name.value();
    let fits = (1..=128).contains(&value.len())
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/".contains(&b))
        && value.split('/').all(|part| !part.bytes().all(|b| b == b'.'));
    if fits { Ok(()) } else { Err(Error::new(name.span(), "a workflow name has 1 to 128 characters of A-Z a-z 0-9 . _ - /")) }
}

fn expand(name: Option<LitStr>, function: ItemFn) -> Result<Tokens, Error> {
    let (input, output) = check(&function.sig)?;
    purity::check(&function.block)?;
    let (docs, visibility, ident) = (docs(&function), &function.vis, &function.sig.ident);
    let name = name.unwrap_or_else(|| LitStr::new(&ident.to_string(), ident.span()));
    let mut inner = function.clone();
    inner.attrs.retain(|attribute| !attribute.path().is_ident("doc"));
    inner.vis = syn::Visibility::Inherited;
    Ok(quote! {
        #(#docs)*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug)]
        #visibility struct #ident;

        impl ::steadfast::Workflow for #ident {
            const NAME: &'static str = #name;
            type Input = #input;
            type Output = <#output as ::steadfast::WorkflowResult>::Value;

            fn run(
                ctx: ::steadfast::Ctx,
                input: Self::Input,
            ) -> impl ::core::future::Future<Output = ::core::result::Result<Self::Output, ::steadfast::Failure>> + ::core::marker::Send + 'static {
                #inner
                #ident(ctx, input)
            }
        }
    })
}

fn docs(function: &ItemFn) -> Vec<&syn::Attribute> {
    function.attrs.iter().filter(|attribute| attribute.path().is_ident("doc")).collect()
}

/// The input and return types, if the function has the form of a workflow.
fn check(signature: &Signature) -> Result<(Type, Type), Error> {
    const FORM: &str = "a workflow is `async fn name(ctx: Ctx, input: Input) -> Result<Output, Failure>`";
    let wrong = |span, why: &str| Err(Error::new(span, format!("{why}; {FORM}")));
    if signature.asyncness.is_none() {
        return wrong(signature.fn_token.span(), "this function is not async");
    }
    if !signature.generics.params.is_empty() {
        return wrong(signature.generics.span(), "a workflow cannot be generic");
    }
    let inputs: Vec<_> = signature.inputs.iter().collect();
    let [FnArg::Typed(ctx), FnArg::Typed(input)] = inputs[..] else {
        return wrong(signature.inputs.span(), "it takes exactly two arguments");
    };
    if matches!(*ctx.ty, Type::Reference(_)) {
        return wrong(ctx.ty.span(), "the context is taken by value");
    }
    if matches!(*input.ty, Type::Reference(_)) {
        return wrong(input.ty.span(), "the input is taken by value: it is read from the journal");
    }
    if let Pat::Wild(_) = *ctx.pat {
        return wrong(ctx.pat.span(), "a workflow needs its context");
    }
    match &signature.output {
        ReturnType::Type(_, output) => Ok(((*input.ty).clone(), (**output).clone())),
        ReturnType::Default => wrong(signature.span(), "it returns nothing"),
    }
}
