/* Credentials: their sources and the order of these, when they are fetched again, and that no
 * message shows a secret. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "cache/http/credentials.h"
#include "cache/http/credentials_parse.h"
#include "cache/http/xml.h"
#include "support/fake_http.h"
#include "support/temp_folder.h"
#include "support/test_clock.h"
#include "support/unit.h"

#define INSTANCE "http://127.0.0.1:1"
#define ROLES    INSTANCE "/latest/meta-data/iam/security-credentials/"

static const char *const variables[] = {"AWS_ACCESS_KEY_ID",
                                        "AWS_SECRET_ACCESS_KEY",
                                        "AWS_SESSION_TOKEN",
                                        "AWS_PROFILE",
                                        "AWS_DEFAULT_PROFILE",
                                        "AWS_REGION",
                                        "AWS_DEFAULT_REGION",
                                        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                                        "AWS_CONTAINER_AUTHORIZATION_TOKEN",
                                        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                                        "AWS_ROLE_ARN",
                                        "AWS_WEB_IDENTITY_TOKEN_FILE",
                                        "AWS_ROLE_SESSION_NAME",
                                        "AWS_ENDPOINT_URL",
                                        "AWS_ENDPOINT_URL_STS",
                                        "AWS_STS_REGIONAL_ENDPOINTS",
                                        "AWS_USE_FIPS_ENDPOINT",
                                        "AWS_EC2_METADATA_DISABLED"};

/* An environment with nothing but two files in a temporary folder. */
static int setup(void **state)
{
    char path[PATH_MAX];

    if (temp_setup(state) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(variables); i++)
        unsetenv(variables[i]);
    temp_path(*state, "credentials", path);
    setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
    temp_path(*state, "config", path);
    setenv("AWS_CONFIG_FILE", path, 1);
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", INSTANCE "/", 1);
    fake_http_set(NULL, 0);
    return 0;
}

static void write_text(const char *folder, const char *name, const char *text)
{
    temp_write(folder, name, text, strlen(text));
}

struct fixture {
    struct credentials *c;
    struct http *http;
};

static void fixture_release(struct fixture *f)
{
    credentials_free(f->c);
    if (f->http)
        transport_free(http_transport(f->http));
}
#define AUTO_FIXTURE AUTO(fixture_release)

static void make_as(struct fixture *f, const struct credentials_options *options)
{
    assert_int_equal(http_new(&(struct http_options){.jobs = 2}, &f->http, NULL), 0);
    assert_int_equal(credentials_new(options, &f->c, NULL), 0);
    credentials_set_http(f->c, f->http);
}

static void make(struct fixture *f, const char *profile)
{
    make_as(f, &(struct credentials_options){.profile = profile});
}

static int get(struct fixture *f, struct http_secret *ret, struct diag *d)
{
    struct http_signer *signer = credentials_signer(f->c);

    return signer->secret(signer, ret, d);
}

/* Check the credentials and their source. */
static void check(struct fixture *f, const char *id, const char *key, const char *token,
                  const char *origin)
{
    struct http_secret secret = {0};
    char text[512];

    assert_int_equal(get(f, &secret, NULL), 0);
    assert_string_equal(secret.key_id, id);
    assert_string_equal(secret.key, key);
    if (token)
        assert_string_equal(secret.token, token);
    else
        assert_null(secret.token);
    http_secret_release(&secret);
    credentials_origin(f->c, text, sizeof(text));
    if (!strstr(text, origin) || strstr(text, key))
        fail_msg("origin \"%s\": expected \"%s\" in it", text, origin);
}

UNIT_TEST_WITH(test_credentials__environment__first, setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture f = {0};

    write_text(*state, "credentials", "[default]\naws_access_key_id=F\naws_secret_access_key=G\n");
    setenv("AWS_ACCESS_KEY_ID", "ID", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "KEY", 1);
    setenv("AWS_SESSION_TOKEN", "TOKEN", 1);
    make(&f, NULL);
    check(&f, "ID", "KEY", "TOKEN", "environment");
    assert_string_equal(credentials_region(f.c), "us-east-1");
}

UNIT_TEST_WITH(test_credentials__half_an_environment__message, setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture f = {0};
    struct http_secret secret = {0};
    struct diag d = DIAG_INIT;

    setenv("AWS_SECRET_ACCESS_KEY", "HUSH", 1);
    make(&f, NULL);
    assert_int_equal(get(&f, &secret, &d), -EINVAL);
    assert_diag_has(&d, "AWS_ACCESS_KEY_ID");
    assert_null(strstr(d.text, "HUSH"));
}

UNIT_TEST_WITH(test_credentials__profiles__of_both_files, setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture a = {0}, b = {0}, c = {0};

    write_text(*state, "credentials",
               "# comment\n[default]\naws_access_key_id = A\naws_secret_access_key = KEY=B \n"
               "[ two ]\r\naws_access_key_id=C\r\naws_secret_access_key=D=/+ # of ours\r\n"
               "aws_session_token = E\r\n");
    write_text(*state, "config",
               "[default]\nregion = eu-west-1\n[profile two]\nregion=eu-north-1\ns3 =\n"
               "  addressing_style = path\n  aws_access_key_id = no\n"
               "[profile \"in config\"]\naws_access_key_id=X\naws_secret_access_key=KEY=Y\n"
               "endpoint_url = http://e\n[three]\naws_access_key_id=no\n");
    make(&a, NULL);
    check(&a, "A", "KEY=B", NULL, "profile default of /");
    assert_string_equal(credentials_region(a.c), "eu-west-1");
    setenv("AWS_ACCESS_KEY_ID", "ID", 1); /* an explicit profile has precedence */
    setenv("AWS_SECRET_ACCESS_KEY", "KEY", 1);
    make(&b, "two");
    check(&b, "C", "D=/+", "E", "profile two of ");
    assert_string_equal(credentials_region(b.c), "eu-north-1");
    setenv("AWS_REGION", "mars-1", 1);
    make(&c, "in config");
    check(&c, "X", "KEY=Y", NULL, "config");
    assert_string_equal(credentials_region(c.c), "mars-1");
    {
        char *endpoint = NULL;

        assert_int_equal(credentials_endpoint(c.c, &endpoint), 1);
        assert_string_equal(endpoint, "http://e");
        free(endpoint);
    }
}

UNIT_TEST_WITH(test_credentials__no_such_profile__enoent, setup, temp_teardown)
{
    struct credentials *c = NULL;
    struct diag d = DIAG_INIT, e = DIAG_INIT;

    write_text(*state, "config", "[three]\naws_access_key_id=no\n");
    assert_int_equal(credentials_new(&(struct credentials_options){.profile = "three"}, &c, &d),
                     -ENOENT);
    assert_diag_has(&d, "three");
    assert_int_equal(credentials_new(&(struct credentials_options){.region = "a b"}, &c, &e),
                     -EINVAL);
}

UNIT_TEST_WITH(test_credentials__profile_of_other_tools__says_what_to_do, setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture f = {0};
    struct http_secret secret = {0};
    struct diag d = DIAG_INIT;

    write_text(*state, "config", "[profile s]\nsso_session = corp\n");
    make(&f, "s");
    assert_int_equal(get(&f, &secret, &d), -EOPNOTSUPP);
    assert_diag_has(&d, "sso_session");
    assert_diag_has(&d, "export-credentials");
}

UNIT_TEST_WITH(test_credentials__nothing_anywhere__unsigned, setup, temp_teardown)
{
    AUTO_FIXTURE struct fixture f = {0}, g = {0};
    struct http_secret secret = {0};
    char text[128];

    make(&f, NULL);
    assert_int_equal(get(&f, &secret, NULL), 1);
    assert_int_equal(get(&f, &secret, NULL), 1);
    assert_int_equal(fake_http.requests, 1); /* the instance was asked once */
    assert_string_equal(fake_http.request[0].method, "PUT");
    assert_int_equal(fake_http.request[0].timeout_s, 1);
    assert_int_equal(fake_http.request[0].tries, 1);
    credentials_origin(f.c, text, sizeof(text));
    assert_non_null(strstr(text, "anonymous"));
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    make(&g, NULL);
    assert_int_equal(get(&g, &secret, NULL), 1);
    assert_int_equal(fake_http.requests, 1);
}

UNIT_TEST_WITH(test_credentials__instance__token_role_secret, setup, temp_teardown)
{
    static const struct fake_answer answers[] = {
        {INSTANCE "/latest/api/token", "PUT", 0, "TOK", {0}},
        {ROLES, NULL, 0, "my-role\n", {0}},
        {ROLES "my-role",
         NULL,
         0,
         "{\n \"Code\" : \"Success\",\n \"AccessKeyId\" : \"I\", \"SecretAccessKey\" : \"a\\/b\","
         "\"Token\" : \"T\", \"Expiration\" : \"2999-01-01T00:00:00Z\" }",
         {0}}};
    AUTO_FIXTURE struct fixture f = {0};

    fake_http_set(answers, ARRAY_LEN(answers));
    make(&f, NULL);
    check(&f, "I", "a/b", "T", "instance endpoint");
    check(&f, "I", "a/b", "T", "instance endpoint");
    assert_int_equal(fake_http.requests, 3);
    assert_string_equal(fake_http.request[1].header, "X-aws-ec2-metadata-token: TOK");
    assert_string_equal(fake_http.request[2].header, "X-aws-ec2-metadata-token: TOK");
    for (size_t i = 0; i < 3; i++)
        assert_true(fake_http.request[i].plain);
}

UNIT_TEST_WITH(test_credentials__google__token_if_asked_for, setup, temp_teardown)
{
    static const struct {
        const char *token, *host, *answer, *want, *words;
    } rows[] = {
        {"GIVEN", "h:1", NULL, "GIVEN", "token of $CLOUDSDK_AUTH_ACCESS_TOKEN"},
        {NULL, "h:1", "{\"access_token\": \"ya29\", \"expires_in\": 3599}", "ya29",
         "service account of this machine"},
        {NULL, "h:1", "{}", NULL, "expected JSON with access_token"},
        {"two words", NULL, NULL, NULL, "expected one word of ASCII"},
        {NULL, "h/x", NULL, NULL, "expected HOST or HOST:PORT"},
        {NULL, NULL, NULL, NULL, "anonymous"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fake_answer answers[] = {
            {"http://h:1/computeMetadata/v1/instance/service-accounts/default/token",
             NULL,
             0,
             rows[i].answer,
             {0}}};
        AUTO_FIXTURE struct fixture f = {0};
        struct http_secret secret = {0};
        struct diag d = DIAG_INIT;
        char text[512];
        int r;

        setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
        unsetenv("CLOUDSDK_AUTH_ACCESS_TOKEN");
        unsetenv("GCE_METADATA_HOST");
        if (rows[i].token)
            setenv("CLOUDSDK_AUTH_ACCESS_TOKEN", rows[i].token, 1);
        if (rows[i].host)
            setenv("GCE_METADATA_HOST", rows[i].host, 1);
        fake_http_set(answers, rows[i].answer ? 1 : 0);
        make_as(&f, &(struct credentials_options){.google = true});
        r = get(&f, &secret, &d);
        credentials_origin(f.c, text, sizeof(text));
        assert_int_equal(r == 0, rows[i].want != NULL);
        if (!strstr(r < 0 ? d.text : text, rows[i].words))
            fail_msg("row %zu: %s: expected %s", i, r < 0 ? d.text : text, rows[i].words);
        if (!rows[i].want)
            continue;
        assert_null(secret.key_id);
        assert_string_equal(secret.token, rows[i].want);
        http_secret_release(&secret);
        assert_int_equal(fake_http.requests, rows[i].answer != NULL);
        if (rows[i].answer)
            assert_string_equal(fake_http.request[0].header, "Metadata-Flavor: Google");
    }
    unsetenv("GCE_METADATA_HOST");
    unsetenv("CLOUDSDK_AUTH_ACCESS_TOKEN");
}

/* An answer of a container whose credentials expire in so many seconds. */
static void container_answer(char *ret, size_t capacity, const char *id, int seconds)
{
    time_t at = time(NULL) + seconds;
    struct tm tm;
    char expires[32];

    strftime(expires, sizeof(expires), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &tm));
    snprintf(ret, capacity,
             "{\"AccessKeyId\":\"%s\",\"SecretAccessKey\":\"S\",\"Token\":\"T\","
             "\"Expiration\":\"%s\"}",
             id, expires);
}

#define STS_REPLY(id)                                                                              \
    "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"            \
    "<AccessKeyId>" id "</AccessKeyId><SecretAccessKey>S&amp;</SecretAccessKey>"                   \
    "<SessionToken>T</SessionToken><Expiration>2001-09-09T01:46:41Z</Expiration></Credentials>"    \
    "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"

static void set_role(const char *folder)
{
    char path[PATH_MAX];

    write_text(folder, "web-token", "\n  WEB-TOKEN/1 \n\n");
    temp_path(folder, "web-token", path);
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", path, 1);
    setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r", 1);
    setenv("AWS_ROLE_SESSION_NAME", "job-7", 1);
    setenv("AWS_REGION", "eu-west-1", 1);
}

/* The token file is read for each request, because it is rotated; these secrets have expired. */
UNIT_TEST_WITH(test_credentials__web_identity__role, setup, temp_teardown)
{
    static const struct fake_answer answers[] = {
        {"https://sts.eu-west-1.amazonaws.com/", "POST", 0, STS_REPLY("W"), {0}}};
    AUTO_FIXTURE struct fixture f = {0};

    fake_http_set(answers, 1);
    set_role(*state);
    make(&f, NULL);
    check(&f, "W", "S&", "T", "role arn:aws:iam::1:role/r");
    assert_string_equal(
        fake_http.request[0].post,
        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%"
        "3A%3A1%3Arole%2Fr&RoleSessionName=job-7&WebIdentityToken=WEB-TOKEN%2F1");
    write_text(*state, "web-token", "WEB-TOKEN-2");
    check(&f, "W", "S&", "T", "role arn:aws:iam::1:role/r");
    assert_non_null(strstr(fake_http.request[1].post, "WebIdentityToken=WEB-TOKEN-2"));
    unsetenv("AWS_REGION");
}

UNIT_TEST_WITH(test_credentials__web_identity__of_a_profile, setup, temp_teardown)
{
    static const struct fake_answer answers[] = {
        {"https://sts.amazonaws.com/", "POST", 0, STS_REPLY("P"), {0}}};
    AUTO_FIXTURE struct fixture f = {0};
    char config[PATH_MAX + 200], path[PATH_MAX];

    fake_http_set(answers, 1);
    write_text(*state, "token", "TOKEN");
    temp_path(*state, "token", path);
    snprintf(config, sizeof(config),
             "[profile x]\nrole_arn = arn:r\nweb_identity_token_file = %s\n", path);
    write_text(*state, "config", config);
    setenv("AWS_STS_REGIONAL_ENDPOINTS", "legacy", 1);
    make(&f, "x");
    check(&f, "P", "S&", "T", "role arn:r");
}

UNIT_TEST_WITH(test_credentials__web_identity__errors, setup, temp_teardown)
{
    static const struct {
        struct fake_answer answer;
        const char *endpoint, *session, *piece;
        unsigned requests;
    } cases[] = {
        {{"https://h/",
          "POST",
          -EREMOTEIO,
          "<Error><Code>ExpiredTokenException</Code></Error>",
          {0}},
         "https://h",
         "job-7",
         "an error",
         1},
        {{"https://h/",
          "POST",
          -EREMOTEIO,
          "<Error><Code>IDPCommunicationError</Code></Error>",
          {0}},
         "https://h",
         "job-7",
         "an error",
         3},
        {{"https://h/", "POST", 0, "{}", {0}}, "https://h", "job-7", "expected XML", 1},
        {{"https://h/", "POST", 0, "<a><AccessKeyId>x</AccessKeyId></a>", {0}},
         "https://h",
         "job-7",
         "expected XML",
         1},
        {{"https://h/", "POST", 0, STS_REPLY("P"), {0}}, "http://h", "job-7", "https://", 0},
        {{"https://h/", "POST", 0, STS_REPLY("P"), {0}}, "https://h", "a b", "SESSION_NAME", 0},
    };

    set_role(*state);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FIXTURE struct fixture f = {0};
        struct http_secret secret = {0};
        struct diag d = DIAG_INIT;

        fake_http_set(&cases[i].answer, 1);
        setenv("AWS_ENDPOINT_URL_STS", cases[i].endpoint, 1);
        setenv("AWS_ROLE_SESSION_NAME", cases[i].session, 1);
        make(&f, NULL);
        assert_true(get(&f, &secret, &d) < 0);
        assert_diag_has(&d, cases[i].piece);
        assert_null(strstr(d.text, "WEB-TOKEN"));
        assert_int_equal(fake_http.requests, cases[i].requests);
    }
    unsetenv("AWS_REGION");
}

UNIT_TEST_WITH(test_credentials__container__token_of_file, setup, temp_teardown)
{
    char body[512], path[PATH_MAX];
    struct fake_answer answers[] = {{"http://169.254.170.2/v2/x", NULL, 0, body, {0}}};
    AUTO_FIXTURE struct fixture f = {0};

    container_answer(body, sizeof(body), "C", 3600);
    fake_http_set(answers, 1);
    write_text(*state, "token", "SECRET-TOKEN\n");
    temp_path(*state, "token", path);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", path, 1);
    setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x", 1);
    make(&f, NULL);
    check(&f, "C", "S", "T", "container endpoint");
    check(&f, "C", "S", "T", "container endpoint");
    assert_int_equal(fake_http.requests, 1);
    assert_string_equal(fake_http.request[0].header, "Authorization: SECRET-TOKEN");
    assert_true(fake_http.request[0].plain);
}

UNIT_TEST_WITH(test_credentials__about_to_expire__asked_for_again, setup, temp_teardown)
{
    char body[512];
    struct fake_answer answers[] = {{"http://127.0.0.1/c", NULL, 0, body, {0}}};
    AUTO_FIXTURE struct fixture f = {0}, g = {0};
    struct http_secret secret = {0};
    struct diag d = DIAG_INIT;

    fake_http_set(answers, 1);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1/c", 1);
    container_answer(body, sizeof(body), "OLD", -5); /* already expired */
    make(&f, NULL);
    check(&f, "OLD", "S", "T", "container");
    container_answer(body, sizeof(body), "NEW", 200); /* less than 5 minutes, but good */
    check(&f, "NEW", "S", "T", "container");
    assert_int_equal(fake_http.requests, 2);
    answers[0].error = -EREMOTEIO;
    check(&f, "NEW", "S", "T", "container"); /* not fetched again at once */
    assert_int_equal(fake_http.requests, 2);
    make(&g, NULL);
    assert_int_equal(get(&g, &secret, &d), -EREMOTEIO);
    assert_diag_has(&d, "http://127.0.0.1/c");
    assert_null(strstr(d.text, "\"S\""));
}

/* A secret that the server refuses is read again where it is kept, at most once a second. */
UNIT_TEST_WITH(test_credentials__refused__loaded_again, setup, temp_teardown)
{
    static const char *const texts[] = {
        "[default]\naws_access_key_id=OLD\naws_secret_access_key=S=1\naws_session_token=T1\n",
        "[default]\naws_access_key_id=NEW\naws_secret_access_key=S=2\naws_session_token=T2\n"};
    struct test_clock clock;
    struct credentials_options options = {.clock = &clock.clock};
    AUTO_FIXTURE struct fixture f = {0};
    struct http_signer *signer;

    test_clock_init(&clock);
    assert_int_equal(credentials_new(&options, &f.c, NULL), 0);
    signer = credentials_signer(f.c);
    write_text(*state, "credentials", texts[0]);
    check(&f, "OLD", "S=1", "T1", "profile default");
    write_text(*state, "credentials", texts[1]);
    test_clock_turn(&clock, 2 * TEST_S);
    check(&f, "OLD", "S=1", "T1", "profile default");
    signer->refused(signer);
    check(&f, "NEW", "S=2", "T2", "profile default");
    write_text(*state, "credentials", texts[0]);
    signer->refused(signer);
    check(&f, "NEW", "S=2", "T2", "profile default"); /* it was read just now */
    test_clock_turn(&clock, 2 * TEST_S);
    signer->refused(signer);
    check(&f, "OLD", "S=1", "T1", "profile default");
    credentials_free(TAKE_PTR(f.c));
    test_clock_release(&clock);
}

UNIT_TEST_WITH(test_credentials__bad_answers__ebadmsg, setup, temp_teardown)
{
    static const char *const bodies[] = {"",
                                         "{}",
                                         "[]",
                                         "{\"AccessKeyId\":\"a\"}",
                                         "{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"HUSH\","
                                         "\"Expiration\":\"tomorrow\"}",
                                         "{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"HUSH\""};

    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://localhost:80/c", 1);
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct fake_answer answers[] = {{"http://localhost:80/c", NULL, 0, bodies[i], {0}}};
        AUTO_FIXTURE struct fixture f = {0};
        struct http_secret secret = {0};
        struct diag d = DIAG_INIT;

        fake_http_set(answers, 1);
        make(&f, NULL);
        assert_int_equal(get(&f, &secret, &d), -EBADMSG);
        assert_diag_has(&d, "container endpoint");
        assert_null(strstr(d.text, "HUSH"));
    }
}

UNIT_TEST(test_container_url__only_near_or_secret)
{
    static const char *const good[] = {"https://host/x",          "http://localhost/x",
                                       "http://127.0.0.1:80",     "http://127.9.9.9/x",
                                       "http://[::1]:80/x",       "http://169.254.170.23/x",
                                       "http://[fd00:ec2::23]/v1"};
    static const char *const bad[] = {"http://host/x",
                                      "http://127.0.0.1.evil.com/",
                                      "http://localhost.evil/",
                                      "http://169.254.169.254/",
                                      "http://127.0.0.1@evil/",
                                      "ftp://localhost/",
                                      "http://[::2]/",
                                      "https://",
                                      "http://localhost/\r\nX: y",
                                      ""};

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_true(container_url_is_good(good[i]));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(container_url_is_good(bad[i]));
}

UNIT_TEST(test_iso_time__texts)
{
    static const char *const bad[] = {"",
                                      "2026-11-21",
                                      "2026-11-21T18:15:22",
                                      "2026-13-21T18:15:22Z",
                                      "2026-11-21 18:15:22Z",
                                      "2026-11-21T18:15:22Zx",
                                      "1969-11-21T18:15:22Z",
                                      "2026-11-21T24:15:22Z"};
    time_t at = 0;

    assert_true(iso_time_parse("1970-01-02T00:00:01Z", &at));
    assert_int_equal(at, 86401);
    assert_true(iso_time_parse("1970-01-02T00:00:01.999999+00:00", &at));
    assert_int_equal(at, 86401);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(iso_time_parse(bad[i], &at));
}
