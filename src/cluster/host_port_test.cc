#include "cluster/host_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/cluster_testing.h"
#include "cluster/text.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

void ExpectRefused(const std::string& text) {
  const auto parsed = HostPort::Parse(text);
  ASSERT_FALSE(parsed.ok()) << text;
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(parsed.status()), HasSubstr(Quote(Trim(text))));
  EXPECT_THAT(MessageOf(parsed.status()), HasSubstr("IPv6 needs brackets"));
}

// Every line of the list is in one group of the expectations, so that none is left untried.
TEST(HostPortTest, ParsesOrRefusesOddAddressesAsListed) {  // C1-10
  const auto expected = nlohmann::json::parse(ReadTestdata("C1-10.expected.json"));
  std::vector<std::string> tried;
  for (const auto& row : expected["ok"]) {
    tried.push_back(row[0]);
    const auto parsed = HostPort::Parse(tried.back());
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->host, row[1].get<std::string>()) << tried.back();
    EXPECT_EQ(parsed->port, row[2].get<int>()) << tried.back();
    EXPECT_EQ(parsed->ToString(), Trim(tried.back()));
  }
  for (const auto& row : expected["error"]) {
    tried.push_back(row);
    ExpectRefused(tried.back());
  }
  tried.push_back("host:0");
  EXPECT_EQ(HostPort::Parse("host:0").value(), (HostPort{"host", 0}));

  const std::string lines = ReadTestdata("C1-10.txt");
  for (const std::string_view line : Split(lines, '\n')) {
    if (line.empty()) continue;
    EXPECT_THAT(tried, ::testing::Contains(std::string(line)));
  }
}

TEST(HostPortTest, RefusesWhatIsNoAddress) {
  for (const std::string text : {"",
                                 "  ",
                                 ":",
                                 "host",
                                 "host:-1",
                                 "host:+1",
                                 "host:1.5",
                                 "host: 1",
                                 "ho st:1",
                                 "h,k:1",
                                 "h=k:1",
                                 "1@h:1",
                                 "grpc://host:1",
                                 "[host]:1",
                                 "[127.0.0.1]:1",
                                 "[::1]:",
                                 "[::1]:x",
                                 "[::1]:65536",
                                 "[fe80::1%]:1",
                                 "[fe80::1%a b]:1",
                                 "[[::1]]:1",
                                 "[:::1]:1",
                                 "]:1",
                                 "host:99999999999999999999",
                                 "h\xc3\xb6st:1"}) {
    ExpectRefused(text);
  }
  ExpectRefused(std::string("ho\0st:1", 7));
  ExpectRefused(std::string("[::1\0]:1", 8));
}

TEST(HostPortTest, KnowsLoopback) {
  for (const char* host :
       {"localhost", "LocalHost", "db.localhost", "localhost.localdomain", "ip6-localhost",
        "127.0.0.1", "127.255.0.3", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE((HostPort{host, 1}).IsLoopback()) << host;
  }
  for (const char* host : {"10.0.0.1", "0.0.0.0", "::", "128.0.0.1", "fe80::1", "node-1.example",
                           "127.example", "localhost.example", "notlocalhost"}) {
    EXPECT_FALSE((HostPort{host, 1}).IsLoopback()) << host;
  }
}

TEST(HostPortTest, TellsNamesDefaultsAndOtherLoopbackNumbersApart) {
  EXPECT_TRUE((HostPort{"localhost", 1}).IsLoopbackName());
  EXPECT_FALSE((HostPort{"127.0.0.1", 1}).IsLoopbackName());
  EXPECT_TRUE((HostPort{"127.0.0.1", 1}).IsLoopbackDefault());
  EXPECT_TRUE((HostPort{"::1", 1}).IsLoopbackDefault());
  EXPECT_FALSE((HostPort{"127.0.0.2", 1}).IsLoopbackDefault());
}

TEST(HostPortTest, KeyIsOneForAllSpellings) {
  EXPECT_EQ((HostPort{"Node-1", 7}).Key(), (HostPort{"node-1", 7}).Key());
  EXPECT_EQ((HostPort{"::1", 7}).Key(), (HostPort{"0:0:0:0:0:0:0:1", 7}).Key());
  EXPECT_NE((HostPort{"node", 7}).Key(), (HostPort{"node", 8}).Key());
  EXPECT_NE((HostPort{"fe80::1%a", 7}).Key(), (HostPort{"fe80::1%b", 7}).Key());
}

RC_GTEST_PROP(HostPortPropertyTest, ParsesWhatItPrints, ()) {
  const std::string host = *rc::gen::oneOf(
      rc::gen::nonEmpty(
          rc::gen::container<std::string>(rc::gen::elementOf(std::string("abzAZ019.-_")))),
      rc::gen::element<std::string>("::1", "fe80::1%eth0", "2001:db8::7", "::ffff:10.0.0.1"));
  const HostPort address{host, *rc::gen::inRange(0, 65536)};
  const auto parsed = HostPort::Parse(absl::StrCat(" ", address.ToString(), "\n"));
  RC_ASSERT(parsed.ok());
  RC_ASSERT(*parsed == address);
}

RC_GTEST_PROP(HostPortPropertyTest, AnyTextParsesOrIsRefused, ()) {
  const auto piece = rc::gen::oneOf(
      rc::gen::arbitrary<std::string>(),
      rc::gen::element<std::string>("[", "]", ":", "::1", "%", "host", "0", "65535"));
  std::string text;
  for (const std::string& part : *rc::gen::container<std::vector<std::string>>(piece)) text += part;
  const auto parsed = HostPort::Parse(text);
  if (parsed.ok()) {
    RC_ASSERT(HostPort::Parse(parsed->ToString()).value() == *parsed);
  } else {
    RC_ASSERT(parsed.status().code() == absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace weir
