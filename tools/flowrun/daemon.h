// Open MPI's daemon (orted) on the nodes of a job. mpirun calls flowrun as its remote shell; the
// command line of the daemon is cut into words without a shell, and nothing but a daemon is run.
#pragma once

#include <string>
#include <vector>

namespace flowrun {

// What node `number` is called towards mpirun.
std::string node_name(long number);

// Words of the daemon's command line out of what mpirun hands to a remote shell after the name of
// the host: "orted", then options. Throws std::runtime_error for anything else.
std::vector<std::string> parse_daemon_command(const std::vector<std::string>& shell_words);

// The words that a node runs: only orted, only with parameters of Open MPI, none of which may name
// code to be loaded; its files go to `session`. Throws std::runtime_error.
std::vector<std::string> check_daemon_words(const std::vector<std::string>& words,
                                            const std::string& session);

// A file that mpirun can call as its remote shell; it leads back here.
std::string make_agent(const std::string& session, const std::string& flowrun);
bool is_agent_command(int argc, char** argv);
// Hands the command line to the flowrun of this session, which passes it on to the node, and waits
// for the daemon's end. The exit code is the daemon's.
int run_agent(int argc, char** argv);

}  // namespace flowrun
