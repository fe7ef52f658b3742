//! What a client does with resources and prompts.

#![expect(deprecated, reason = "subscriptions by request are, but clients use them")]

use std::sync::atomic::Ordering;

use rmcp::{
    RoleClient, ServiceError,
    model::{
        ArgumentInfo, ClientRequest, CompleteRequestParams, GetPromptRequest, GetPromptRequestParams,
        GetPromptResponse, ReadResourceRequest, ReadResourceRequestParams, ReadResourceResponse, Reference,
        ServerCapabilities, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
    },
    service::{PeerRequestOptions, RequestHandle},
};
use serde_json::{Value, json};

use super::{Agent, Era, eventually, runtime};

impl Agent {
    /// What the proxy says that it has.
    pub fn capabilities(&self) -> ServerCapabilities {
        self.service.peer_info().expect("info").capabilities.clone()
    }

    pub fn try_resources(&self) -> Result<Vec<Value>, ServiceError> {
        let list = runtime().block_on(self.service.list_resources(None))?;
        Ok(list.resources.iter().map(|resource| json!(resource)).collect())
    }

    pub fn resources(&self) -> Vec<Value> {
        self.try_resources().expect("a list of resources")
    }

    /// Waits until the resource is listed.
    pub fn has_resource(&self, uri: &str) {
        eventually(uri, || self.resources().iter().any(|resource| resource["uri"] == uri).then_some(()));
    }

    pub fn templates(&self) -> Vec<Value> {
        let list =
            runtime().block_on(self.service.list_resource_templates(None)).expect("a list of templates");
        list.resource_templates.iter().map(|template| json!(template)).collect()
    }

    /// The result; questions are answered, in either era.
    pub fn try_read(&self, uri: &str) -> Result<Value, ServiceError> {
        runtime()
            .block_on(self.service.read_resource(ReadResourceRequestParams::new(uri)))
            .map(|read| json!(read))
    }

    /// The text of a resource's only contents.
    pub fn read(&self, uri: &str) -> String {
        let read = self.try_read(uri).unwrap_or_else(|error| panic!("{uri}: {error}"));
        read["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{read}")).to_owned()
    }

    /// One step of reading, with the answers and state of the last one.
    pub fn read_once(
        &self,
        uri: &str,
        answers: Option<Value>,
        state: Option<&str>,
    ) -> Result<Value, ServiceError> {
        let mut params = ReadResourceRequestParams::new(uri);
        params.input_responses = answers.map(|answers| serde_json::from_value(answers).expect("an object"));
        params.request_state = state.map(str::to_owned);
        Ok(match runtime().block_on(self.service.read_resource_once(params))? {
            ReadResourceResponse::Complete(result) => json!(result),
            ReadResourceResponse::InputRequired(asked) => json!(asked),
            other => panic!("{other:?}"),
        })
    }

    /// Begins to read without waiting for the answer.
    pub fn start_reading(&self, uri: &str) -> RequestHandle<RoleClient> {
        let request = ReadResourceRequest::new(ReadResourceRequestParams::new(uri));
        self.start(ClientRequest::ReadResourceRequest(request))
    }

    pub fn try_prompts(&self) -> Result<Vec<Value>, ServiceError> {
        let list = runtime().block_on(self.service.list_prompts(None))?;
        Ok(list.prompts.iter().map(|prompt| json!(prompt)).collect())
    }

    pub fn prompts(&self) -> Vec<Value> {
        self.try_prompts().expect("a list of prompts")
    }

    /// Waits until the prompt is listed.
    pub fn has_prompt(&self, name: &str) {
        eventually(name, || self.prompts().iter().any(|prompt| prompt["name"] == name).then_some(()));
    }

    /// The result; questions are answered, in either era.
    pub fn try_prompt(&self, name: &str, arguments: Value) -> Result<Value, ServiceError> {
        runtime().block_on(self.service.get_prompt(prompt(name, arguments))).map(|result| json!(result))
    }

    /// The text of a prompt's first message.
    pub fn prompt(&self, name: &str, arguments: Value) -> String {
        let result = self.try_prompt(name, arguments).unwrap_or_else(|error| panic!("{name}: {error}"));
        result["messages"][0]["content"]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
    }

    /// One step of getting a prompt, with the answers and state of the last one.
    pub fn prompt_once(
        &self,
        name: &str,
        answers: Option<Value>,
        state: Option<&str>,
    ) -> Result<Value, ServiceError> {
        let mut params = prompt(name, json!({}));
        params.input_responses = answers.map(|answers| serde_json::from_value(answers).expect("an object"));
        params.request_state = state.map(str::to_owned);
        Ok(match runtime().block_on(self.service.get_prompt_once(params))? {
            GetPromptResponse::Complete(result) => json!(result),
            GetPromptResponse::InputRequired(asked) => json!(asked),
            other => panic!("{other:?}"),
        })
    }

    /// Begins to get a prompt without waiting for the answer.
    pub fn start_prompt(&self, name: &str) -> RequestHandle<RoleClient> {
        let request = GetPromptRequest::new(prompt(name, json!({})));
        self.start(ClientRequest::GetPromptRequest(request))
    }

    fn start(&self, request: ClientRequest) -> RequestHandle<RoleClient> {
        let sending = self.service.send_request_with_option(request, PeerRequestOptions::no_options());
        runtime().block_on(sending).expect("a request")
    }

    /// The values that complete an argument.
    pub fn complete(&self, of: Reference, argument: &str, value: &str) -> Result<Value, ServiceError> {
        let argument: ArgumentInfo =
            serde_json::from_value(json!({"name": argument, "value": value})).expect("an argument");
        let params = CompleteRequestParams::new(of, argument);
        runtime().block_on(self.service.complete(params)).map(|result| json!(result.completion))
    }

    /// In the way of the era: by a request, or with a stream.
    pub fn try_subscribe(&self, uri: &str) -> Result<(), ServiceError> {
        runtime().block_on(async {
            if self.era == Era::Sessions {
                return self.service.subscribe(SubscribeRequestParams::new(uri)).await;
            }
            let filter = SubscriptionFilter::builder().resource_subscription(uri).build();
            let mut stream = self.service.listen(filter).await?;
            if stream.acknowledged().resource_subscriptions.is_none() {
                return Err(ServiceError::UnexpectedResponse);
            }
            let ears = self.ears.clone();
            let hearing = tokio::spawn(async move {
                while let Ok(Some(notification)) = stream.next().await {
                    ears.hear(&notification);
                }
            });
            self.streams.lock().expect("no panic while locked").insert(uri.to_owned(), hearing);
            Ok(())
        })
    }

    pub fn subscribe(&self, uri: &str) {
        self.try_subscribe(uri).unwrap_or_else(|error| panic!("{uri}: {error}"));
    }

    pub fn unsubscribe(&self, uri: &str) {
        if self.era == Era::Sessions {
            let params = UnsubscribeRequestParams::new(uri);
            runtime().block_on(self.service.unsubscribe(params)).expect("an answer");
        } else {
            let stream = self.streams.lock().expect("no panic while locked").remove(uri);
            // Dropping the stream ends it.
            stream.expect("a stream").abort();
        }
    }

    /// The resources of whose updates it was notified, in order.
    pub fn updates(&self) -> Vec<String> {
        self.ears.updates.lock().expect("no panic while locked").clone()
    }

    pub fn resource_changes(&self) -> usize {
        self.ears.resource_changes.load(Ordering::SeqCst)
    }

    pub fn prompt_changes(&self) -> usize {
        self.ears.prompt_changes.load(Ordering::SeqCst)
    }
}

fn prompt(name: &str, arguments: Value) -> GetPromptRequestParams {
    let mut params = GetPromptRequestParams::new(name);
    params.arguments = arguments.as_object().cloned();
    params
}
