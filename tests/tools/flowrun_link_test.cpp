// What flowruns say to each other: signatures, the greeting, frames, and the command of a daemon.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/flowrun/daemon.h"
#include "tools/flowrun/link.h"
#include "tools/flowrun/node_files.h"
#include "tools/flowrun/session.h"
#include "tools/flowrun/sha256.h"

namespace flowrun {
namespace {

std::string hex(const Sha256Digest& digest) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : digest) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

// The examples of FIPS 180-4 (NIST, "SHA256.pdf"), and of RFC 4231.
TEST(FlowrunSha256, GivesTheValuesOfItsStandard) {
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(std::string(131, '\xaa'),
                            "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// Two sockets that a test stands between: what one side says reaches the other through it.
class FlowrunLink : public testing::Test {
 protected:
  FlowrunLink() { connect("the secret", "the secret"); }

  ~FlowrunLink() override {
    for (const int file : between_)
      close(file);
  }

  void connect(const std::string& of_head, const std::string& of_node) {
    for (const int file : between_)
      close(file);
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    head_ = std::make_unique<Link>(ends[0], Link::Side::kHead, of_head);
    between_[0] = ends[1];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    node_ = std::make_unique<Link>(ends[0], Link::Side::kNode, of_node);
    between_[1] = ends[1];
  }

  // What has been said on one side of the test: 0 by the head, 1 by the node.
  std::string hear(size_t side) {
    std::string text(1 << 16, '\0');
    const ssize_t count = recv(between_[side], text.data(), text.size(), 0);
    text.resize(count < 0 ? 0 : static_cast<size_t>(count));
    return text;
  }

  void say(size_t side, const std::string& text) {
    ASSERT_EQ(send(between_[side], text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }

  // Lets both talk until they have nothing to say.
  void talk() {
    for (int i = 0; i < 8; ++i) {
      head_->step();
      say(1, hear(0));
      node_->step();
      const std::string answer = hear(1);
      if (head_->state() != Link::State::kLost) say(0, answer);
    }
  }

  std::array<int, 2> between_ = {-1, -1};
  std::unique_ptr<Link> head_;
  std::unique_ptr<Link> node_;
};

TEST_F(FlowrunLink, CarriesFramesBothWays) {
  talk();
  ASSERT_EQ(head_->state(), Link::State::kOpen);
  ASSERT_EQ(node_->state(), Link::State::kOpen);

  head_->send(Frame::Kind::kLaunch, "words");
  node_->send(Frame::Kind::kFile, std::string(200000, 'x'));
  for (int i = 0; i < 100; ++i)
    talk();

  const auto order = node_->take();
  const auto file = head_->take();
  ASSERT_TRUE(order && file);
  EXPECT_EQ(order->kind, Frame::Kind::kLaunch);
  EXPECT_EQ(order->content, "words");
  EXPECT_EQ(file->content, std::string(200000, 'x'));
}

TEST_F(FlowrunLink, NeedsTheSameSecret) {
  connect("the secret", "another secret");

  talk();

  EXPECT_EQ(head_->state(), Link::State::kLost);
  EXPECT_EQ(head_->reason(), "it does not know the secret of the job");
  EXPECT_NE(node_->state(), Link::State::kOpen);
}

TEST_F(FlowrunLink, AHeadThatDoesNotKnowTheSecretIsLeft) {
  say(1, "flowrun1" + std::string(32, 'a'));
  node_->step();
  EXPECT_EQ(hear(1).size(), 8 + 32 + 32U);

  say(1, std::string(32, 'b'));
  node_->step();

  EXPECT_EQ(node_->state(), Link::State::kLost);
  EXPECT_EQ(node_->reason(), "it does not know the secret of the job");
}

// The numbers of each greeting are new, so that an old answer does not fit.
TEST_F(FlowrunLink, AGreetingCannotBePlayedBack) {
  head_->step();
  say(1, hear(0));
  node_->step();
  const std::string answer = hear(1);
  connect("the secret", "the secret");
  head_->step();

  say(0, answer);
  head_->step();

  EXPECT_EQ(head_->state(), Link::State::kLost);
}

TEST_F(FlowrunLink, AFrameCannotBePlayedBackOrChanged) {
  for (const bool is_changed : {false, true}) {
    connect("the secret", "the secret");
    talk();
    head_->send(Frame::Kind::kLaunch, "words");
    std::string frame = hear(0);
    if (is_changed) frame[6] = 'a';

    say(1, is_changed ? frame : frame + frame);
    node_->step();

    EXPECT_EQ(node_->take().has_value(), !is_changed);
    EXPECT_FALSE(node_->take());
    EXPECT_EQ(node_->state(), Link::State::kLost);
    EXPECT_EQ(node_->reason(), "it sent a frame with a wrong signature");
  }
}

TEST_F(FlowrunLink, LongFramesAndOtherLanguagesAreNotRead) {
  talk();
  say(1, std::string("\x01\x00\x10\x00\x04", 5));  // 1 MiB and 1 byte
  node_->step();
  EXPECT_EQ(node_->reason(), "it sent a frame that is too long");

  connect("the secret", "the secret");
  say(0, "GET / HTTP/1.1\r\n\r\n");
  head_->step();
  EXPECT_EQ(head_->reason(), "it does not use flowrun's protocol");
}

// Open MPI 4.1.4 calls its remote shell with such words.
const std::vector<std::string> kShellWords = {" orted",
                                              "-mca",
                                              "ess",
                                              "\"env\"",
                                              "-mca",
                                              "orte_node_regex",
                                              "\"vm,flow-node-[1:1]@0(2)\"",
                                              "--mca",
                                              "orte_tmpdir_base",
                                              "\"/dev/shm/a b\""};

TEST(FlowrunDaemon, IsCalledWithoutAShell) {
  const auto words = parse_daemon_command(kShellWords);

  EXPECT_EQ(words, (std::vector<std::string>{"orted", "-mca", "ess", "env", "-mca",
                                             "orte_node_regex", "vm,flow-node-[1:1]@0(2)", "--mca",
                                             "orte_tmpdir_base", "/dev/shm/a b"}));
  EXPECT_EQ(
      check_daemon_words(words, "/here"),
      (std::vector<std::string>{"orted", "--mca", "ess", "env", "--mca", "orte_node_regex",
                                "vm,flow-node-[1:1]@0(2)", "--mca", "orte_tmpdir_base", "/here"}));
}

TEST(FlowrunDaemon, IsFoundBehindWhatSomeShellsNeed) {
  EXPECT_EQ(parse_daemon_command({"( test ! -r ./.profile || . ./.profile;", "orted", "-mca", "ess",
                                  "\"env\"", ")"}),
            (std::vector<std::string>{"orted", "-mca", "ess", "env"}));
  EXPECT_EQ(parse_daemon_command(
                {"PATH=/o/bin:$PATH ; export PATH ; /o/bin/orted", "-mca", "ess", "'env'"}),
            (std::vector<std::string>{"orted", "-mca", "ess", "env"}));
}

TEST(FlowrunDaemon, NothingElseIsRun) {
  using Words = std::vector<std::string>;
  for (const Words& words :
       {Words{"sh", "-c", "true"}, Words{"orted; rm"}, Words{"orted", "&&", "rm"}, Words{},
        Words{"orted", "$(rm)"}, Words{"orted", "\"no end"}, Words{"orted; orted", "|", "rm"}}) {
    EXPECT_THROW(parse_daemon_command(words), std::runtime_error) << testing::PrintToString(words);
  }
  for (const Words& words :
       {Words{"sh"}, Words{"/tmp/orted"}, Words{}, Words{"orted", "--daemonize"},
        Words{"orted", "-mca", "ess"}, Words{"orted", "-x", "ess", "env"},
        Words{"orted", "-mca", "e;s", "env"},
        Words{"orted", "-mca", "mca_component_path", "/tmp"}}) {
    EXPECT_THROW(check_daemon_words(words, "/here"), std::runtime_error)
        << testing::PrintToString(words);
  }
}

TEST(FlowrunFiles, OnlyThoseOfRanksAreTaken) {
  for (const char* name :
       {"exit_0.json", "failed_12.json", "running_3.json", "ended_3.json", "flight_7"}) {
    EXPECT_TRUE(is_file_of_ranks(name)) << name;
  }
  for (const char* name : {"pid_0.json", "node_1.json", "exit_.json", "exit_0", "exit_1/../a.json",
                           "../exit_0.json", "flight_x", "exit_0.json.new", "daemon_1.json"}) {
    EXPECT_FALSE(is_file_of_ranks(name)) << name;
  }
}

// Each removes what others have left, and nothing else.
TEST(FlowrunSession, ManyBeginAtOnce) {
  constexpr int kProcesses = 4, kSessions = 500;
  std::array<pid_t, kProcesses> children{};
  for (pid_t& child : children) {
    child = fork();
    if (child != 0) continue;
    for (int i = 0; i < kSessions; ++i) {
      const Session session;
      if (access((session.path() + "/lock").c_str(), F_OK) != 0) _exit(1);
    }
    _exit(0);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace flowrun
