// Open MPI's daemon (orted) on the nodes of a job. mpirun calls flowrun as its remote shell.
// flowrun splits the command line of the daemon into words without a shell, and runs only orted.
#pragma once

#include <string>
#include <vector>

namespace flowrun {

// The host name that mpirun uses for node `number`.
std::string node_name(long number);

// The words of the daemon's command line ("orted", then options), taken from what mpirun passes to
// a remote shell after the name of the host. Throws std::runtime_error for any other command.
std::vector<std::string> parse_daemon_command(const std::vector<std::string>& shell_words);

// The words that a node runs: orted with parameters of Open MPI that name no code to load, and with
// `session` as the folder of its files. Throws std::runtime_error for anything else.
std::vector<std::string> check_daemon_words(const std::vector<std::string>& words,
                                            const std::string& session);

// Makes a link to flowrun that mpirun can call as its remote shell, and returns its name.
std::string make_agent(const std::string& session, const std::string& flowrun);
bool is_agent_command(int argc, char** argv);
// Passes the command line to the flowrun of this session, which sends it to the node. Waits until
// the daemon has ended, and returns its exit code.
int run_agent(int argc, char** argv);

}  // namespace flowrun
