"""Services whose keys have no form of their own: drawn letters and digits, as an identifier has.

Their name beside such a value tells the two apart. The names are those of the rules of gitleaks
8.30 (config/gitleaks.toml, July 2026) and of the detectors of trufflehog (pkg/detectors, April
2026), without those that are words of English or of a training log.
"""

from __future__ import annotations

SERVICES = frozenset(
    """
    abuseipdb abyssale accuweather adafruit adafruitio adobe adzuna aeroworkflow airbrake
    airbrakeprojectkey airbrakeuserkey airtable airtableoauth airtablepersonalaccesstoken
    airvisual alconost alegra aletheia aletheiaapi algolia algoliaadminkey alibaba alienvault
    allsports amadeus amplitudeapikey apacta apideck apiflash apifonica apilayer apimatic
    apimetrics apitemplate appcues appfollow appointedd appsynergy apptivo artifactoryreference
    artifactoryreferencetoken asana asanaoauth asanapersonalaccesstoken assemblyai atlassian
    atlassiandatacenter autodesk autoklose avazapersonalaccesstoken aviationstack axonaut aylien
    ayrshare azureapimanagement azureapimanagementsubscriptionkey azureappconfigconnectionstring
    azurecontainerregistry azuredevops azuredevopspersonalaccesstoken azuredirectmanagement
    azuredirectmanagementkey azurefunctionkey azuresastoken azuresearch azuresearchadminkey
    azuresearchquery azuresearchquerykey bannerbear baremetrics beamer beebole besnappy besttime
    betterstack billomat bintray bitbar bitbucket bitbucketapppassword bitcoinaverage bitfinex
    bitlyaccesstoken bitmex bittrex blazemeter blitapp blocknative bombbomb boostnote borgbase
    boxoauth braintreepayments brandfetch browserstack browshot bscscan buddyns budibase bugherd
    bugsnag buildkite bulbul bulksms buttercms caflou calendarific calendly calendlyapikey
    calorieninja campayn cannyio capsule capsulecrm captaindata carboninterface cashboard caspio
    censys centralstation centralstationcrm chartmogul checio checklyhq clarifai clearbit
    clicksendsms clickup clickuppersonaltoken cliengo clientary clinchpad clockify clockworksms
    cloudant cloudconvert cloudelements cloudflare cloudflareapitoken cloudflareca
    cloudflarecakey cloudflareglobal cloudflareglobalapikey cloudimage cloudinary cloudmersive
    cloudplan cloudsmith cloverly clustdoc codacy codeclimate codecov codemagic codequiry
    coinapi coinbase coinlayer coinlib commercejs companyhub confluence confluent contentful
    contentfulpersonalaccesstoken convertapi convertkit convier countrylayer coveralls
    craftmypdf crowdin cryptocompare currencycloud currencyfreaks currencylayer currencyscoop
    currentsapi customerguru dareboost databrickstoken datadog datadogapikey datadogtoken
    deepgram detectify detectlanguage diffbot diggernaut digitaloceantoken discordbottoken
    disqus docusign dotdigital dovico dronahq droneci dropbox duffel duffeltoken dwolla dynalist
    dyspatch eagleeyenetworks easyinsight ecostruxureit edamam edenai eightxeight elasticemail
    elevenlabs enablex endorlabs envoyapikey etherscan ethplorer etsy eventbrite everhour
    exchangerateapi exchangeratesapi exportsdk extractorapi facebookoauth faceplusplus fastforex
    fastly fastlypersonaltoken feedier fetchrss fibery figmapersonalaccesstoken finage
    financialmodelingprep finicity finnhub fixerio flatio fleetbase flexport flickr flightapi
    flightlabs flightstats flowflu flutterwave formbucket formcraft formio formsite foursquare
    frameio freshbooks freshdesk fullstory fxmarket geoapify geocodify geocodio geoipifi
    getgeoapi gitter glassnode gocanvas gocardless godaddy goodday grafanaserviceaccount
    graphhopper groovehq gtmetrix guardianapi gumroad hashicorpvaultauth hellosign helpscout
    hereapi heroku hiveage holidayapi honeycomb hubspot hybiscus hypertrack ibmcloud
    ibmclouduserkey iconfinder iexapis iexcloud imagekit imagga insightly instamojo interseller
    intrinio invoiceocean ipgeolocation ipinfo ipinfodb ipquality ipstack jfrog jira jiratoken
    jotform jumpcloud kanbantool karmacrm keenio kickbox klaviyo klipfolio knapsackpro kraken
    kucoin languagelayer larksuite larksuiteapikey launchdarkly leadfeeder lemlist lemonsqueezy
    lendflow lessannoying lessannoyingcrm lexigram linearapi linemessaging linenotify linkedin
    linkpreview liveagent livestorm loadmill locationiq loggly loginradius logzio lokalise
    lokalisetoken looker loyverse lunchmoney madkudu magicbell mailboxlayer mailchimp mailerlite
    mailgun mailjet mailjetbasicauth mailjetsms mailmodo mailsac mandrill mapbox mapquest
    marketstack mattermost mattermostpersonaltoken mavenlink maxmind maxmindlicense meaningcloud
    mediastack meistertask meraki mesibo messagebird metaapi metrilo microsoftteams mixmax
    mixpanel mockaroo monkeylearn moonclerk moosend moralis mrticktock myfreshworks myintervals
    nasdaqdatalink nethunt netlify netsuite neutrinoapi newrelic newrelicbrowser
    newrelicbrowserkey newrelicinsightsinsert newrelicinsightsinsertkey newrelicinsightsquery
    newrelicinsightsquerykey newreliclicensekey newrelicmobileapp newrelicmobileapptoken
    newrelicpersonalapikey newrelicuserkey newsapi newscatcher nexmoapikey nftport nicereply
    nightfall nozbeteams npmtoken nugetapikey numverify nutritionix nytimes octopusdeploy okta
    omnisend onedesk onelogin onepage onepagecrm onesignal onfleet oopspam openaiadmin
    opencagedata openuv openweather opsgenie optimizely owlbot packagecloud pagarme pagerduty
    pagerdutyapikey pandadoc paperform parsehub parseur partnerstack paydirtapp paymoapp
    paymongo paypal paypaloauth paystack pdflayer pdfshift peopledatalabs pepipost pganalyze
    pganalyzereadkey photoroom phraseaccesstoken pinata pipedream pipedrive pivotaltracker
    pixabay plaid plaidkey planetscaledb planviewleankit planyo pollsapi poloniex portainertoken
    positionstack postageapp posthog powrbot privateai prodpad prospect prospectcrm proxycrawl
    pubnub pubnubpublishkey pubnubsubscriptionkey purestake pushbullet pushbulletapikey
    pusherchannel pusherchannelkey qualaroo qubole railwayapp rapidapi razorpay reachmail
    reallysimplesystems rebrandly rechargepayments redhatpyxis rentman repairshopr replyio
    requestfinance restpackhtmltopdf restpackhtmltopdfapi restpackscreenshot
    restpackscreenshotapi revamp revampcrm ringcentral ritekit robinhoodcrypto rocketreach
    rootly runrunit saladcloud saladcloudapikey salesblink salescookie salesflare
    salesforcerefresh salesforcerefreshtoken salesmate satismeter satismeterprojectkey
    satismeterwritekey scaleway scalewaykey scraperapi scraperbox scrapestack scrapfly
    scrapingant scrapingbee screenshotapi screenshotlayer scrutinizerci securitytrails
    segmentapikey selectpdf sendbird sendbirdorganization sendbirdorganizationapi sendinblue
    sentry sentryorgtoken sentrytoken serphouse serpstack sheety sherpadesk shipday shippo
    shodan shodankey shopifyoauth shotstack shutterstock shutterstockoauth signalwire signaturit
    signupgenius sigopt simfin simplesat simplynoted simvoly sinchmessage siteleaf skrappio
    skybiometry smartsheets smartystreets smooch snipcart snyk snykkey softlayer
    solarwindsobservability sonarcloud sourcegraph sourcegraphcody sparkpost spectralops
    speechtextai splunkobservability splunkobservabilitytoken spoonacular sportsmonk spotify
    spotifykey squareapp squarespace sslmate statuscake statuspal stitchdata stockdata storecove
    stormboard stormglass storyblok storyblokpersonalaccesstoken storychief strava
    stripepaymentintent stytch sugester sumologic sumologickey supabasetoken supernotes
    supernotesapi surveyanyplace surveybot surveysparrow survicate swiftype tallyfy tatumio
    taxjar teamgate teamwork teamworkcrm teamworkdesk teamworkspaces technicalanalysisapi tefter
    telegrambottoken teletype telnyx terraformcloud terraformcloudpersonaltoken testingbot
    textmagic theodds theoddsapi thinkific thousandeyes ticketmaster tickettailor tiingo
    timecamp timezoneapi tineswebhook tmetric todoist toggltrack tokeet tomorrowio tomtom
    tradier transferwise travelpayouts travis travisci trelloapikey trufflehogenterprise
    twelvedata twilioapikey twitch twitchaccesstoken twitter twitterconsumerkey tyntec typeform
    typetalk ubidots uclassify unsplash upcdatabase uplead uploadcare uptimerobot upwave urlscan
    userflow userstack vagrantcloud vagrantcloudpersonaltoken vatlayer vercel verimail veriphone
    versioneye viewneo virustotal visualcrossing voiceflow voicegain voodoosms vouchery vpnapi
    vultrapikey walkscore weatherbit weatherstack webexbot webflow websitepulse wistia worksnaps
    workstack worldcoinindex worldweather yandex youneedabudget yousign youtubeapikey zapier
    zapierwebhook zendesk zendeskapi zenkit zenkitapi zenrows zenscrape zenserp zeplin
    zerobounce zerotier zipapi zipbooks zipcodeapi zipcodebase zohocrm zonkafeedback zulipchat
    """.split()
)
