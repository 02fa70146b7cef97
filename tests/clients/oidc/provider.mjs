// A real OpenID Connect provider with a few users, for test_sign_in.py. Prints its issuer once it listens.
import http from "node:http";

import Provider from "oidc-provider";

const CALLBACK = "https://scicat.example.org/api/v3/auth/oidc/callback";
const GROUPS = { max: ["group1", "beamline"], mallory: ["group2"] };

const client = (client_id, redirect_uri, more) => ({
  client_id,
  redirect_uris: [redirect_uri],
  grant_types: ["authorization_code"],
  response_types: ["code"],
  ...more,
});

const server = http.createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [
      client("pinakes", CALLBACK, { client_secret: "a-secret-of-tests" }),
      client("notebook", "https://notebook.example.org/", { token_endpoint_auth_method: "none" }),
      client("stranger", "https://stranger.example.org/", { token_endpoint_auth_method: "none" }),
    ],
    claims: { openid: ["sub"], email: ["email"], profile: ["name", "preferred_username", "groups"] },
    // Clients that send an ID token send no access token, so the claims are in the ID token.
    conformIdTokenClaims: false,
    findAccount: (_, id) => ({
      accountId: id,
      claims: async () => ({
        sub: id,
        preferred_username: id,
        name: `Name of ${id}`,
        email: `${id}@example.org`,
        groups: GROUPS[id] ?? [],
      }),
    }),
  });
  server.on("request", provider.callback());
  console.log(`listens on ${issuer}`);
});
